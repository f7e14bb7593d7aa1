"""Strict JSON schemas: the rules the API holds them to, and an object that fits one."""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def complaint(schema: Schema, context: tuple[str, ...] = ()) -> str | None:
    """What the API's strict mode says against a schema, None if nothing."""
    where = f"In context={_tuple(context)}, "
    if _is_object(schema):
        wrong = _wrong_object(schema)
        if wrong:
            return where + wrong
    if "default" in schema:
        return where + "'default' is not permitted."
    found = (complaint(part, context + path) for path, part in _parts(schema))
    return next((words for words in found if words), None)


def _wrong_object(schema: Schema) -> str | None:
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    required = schema.get("required")
    for name in schema.get("properties", {}):
        if not isinstance(required, list) or name not in required:
            return (
                "'required' is required to be supplied and to be an array including every key "
                f"in properties. Missing '{name}'."
            )
    return None


def _is_object(schema: Schema) -> bool:
    kind = schema.get("type")
    return (
        kind == "object" or "properties" in schema or (isinstance(kind, list) and "object" in kind)
    )


def _parts(schema: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    for key in ("properties", "$defs", "definitions"):
        for name, part in (schema.get(key) or {}).items():
            if isinstance(part, dict):
                yield (key, name), part
    for number, part in enumerate(schema.get("anyOf") or ()):
        yield ("anyOf", str(number)), part
    if isinstance(schema.get("items"), dict):
        yield ("items",), schema["items"]


def _tuple(context: tuple[str, ...]) -> str:
    return "(" + ", ".join(repr(part) for part in context) + ")"


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
    kind = schema.get("type")
    listed = isinstance(kind, list) and "null" in kind
    return listed or any(part.get("type") == "null" for part in schema.get("anyOf", ()))


def kind_of(schema: Schema) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kinds = [kind] if isinstance(kind, str) else [name for name in kind if name != "null"]
    return str(kinds[0]) if kinds else "null"


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
