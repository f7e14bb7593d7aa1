"""Strict JSON schemas: the rules the API holds them to, and an object that fits one."""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def complaint(schema: Schema, context: tuple[str, ...] = ()) -> str | None:
    """What the API's strict mode says against a schema, None if nothing."""
    wrong = _wrong_object(schema) if "object" in _kinds(schema) else None
    if "default" in schema:
        wrong = wrong or "'default' is not permitted."
    if wrong:
        return f"In context=({', '.join(map(repr, context))}), {wrong}"
    found = (complaint(part, context + path) for path, part in _parts(schema))
    return next(filter(None, found), None)


def _wrong_object(schema: Schema) -> str | None:
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    absent = [n for n in schema.get("properties", {}) if n not in (schema.get("required") or ())]
    if not absent:
        return None
    return (
        "'required' is required to be supplied and to be an array including every key "
        f"in properties. Missing '{absent[0]}'."
    )


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return [kind] if isinstance(kind, str) else list(kind)


def _parts(schema: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    for key in ("properties", "$defs", "definitions"):
        yield from (((key, name), part) for name, part in (schema.get(key) or {}).items())
    for number, part in enumerate(schema.get("anyOf") or ()):
        yield ("anyOf", str(number)), part
    if isinstance(schema.get("items"), dict):
        yield ("items",), schema["items"]


def resolved(schema: Schema, root: Schema) -> Schema:
    """A schema with its reference followed and its null alternative left out."""
    if "$ref" in schema:
        found: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found.get(step, {})
        return resolved(found, root)
    choices = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return resolved(choices[0], root) if choices else schema


def nullable(schema: Schema) -> bool:
    return any("null" in _kinds(part) for part in (schema, *schema.get("anyOf", ())))


def kind_of(schema: Schema) -> str:
    return next((kind for kind in _kinds(schema) if kind != "null"), "null")


def fitted(schema: Schema, wanted: Any, root: Schema | None = None) -> Any:
    """`wanted` in the form that a schema allows: its fields alone, the missing ones empty."""
    root = root or schema
    schema = resolved(schema, root)
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum") or [schema.get("const")]
        return wanted if wanted in allowed else allowed[0]
    kind = kind_of(schema)
    if kind == "object":
        given = wanted if isinstance(wanted, dict) else {}
        parts = schema.get("properties", {})
        return {name: fitted(part, given.get(name), root) for name, part in parts.items()}
    if kind == "array":
        entries = wanted if isinstance(wanted, list) else []
        return [fitted(schema.get("items", {}), entry, root) for entry in entries]
    return _plain(kind, wanted)


def _plain(kind: str, wanted: Any) -> Any:
    empty: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": True}
    default = empty.get(kind)
    return wanted if type(wanted) is type(default) else default
