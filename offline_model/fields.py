"""What both protocols check of a single value: its type, its name, its ids, its schema."""

import re
from collections.abc import Mapping
from typing import Any

from offline_model import schemas
from offline_model.errors import ApiRefusal, missing, unsupported, wrong_type

Kinds = tuple[tuple[type, ...], str]  # the types that a value may have, and the API's word for them

STRING: Kinds = ((str,), "a string")
STRINGS: Kinds = ((list,), "an array of strings")
OBJECT: Kinds = ((dict,), "an object")
OBJECTS: Kinds = ((list,), "an array of objects")
TEXT: Kinds = ((str, list), "one of an array of objects or a string")
BOOLEAN: Kinds = ((bool,), "a boolean")
DECIMAL: Kinds = ((int, float), "a decimal")
INTEGER: Kinds = ((int,), "an integer")
CHOICE: Kinds = ((str, dict), "one of an object or a string")

NAME = re.compile(r"[a-zA-Z0-9_-]+")
LONGEST_ID = 64
SEND_AGAIN = (
    "The {where} function calls, but the request came without {what}. Tools and instructions are "
    "not carried over: {what} must be sent again with every request."
)


def parameters(kinds: Mapping[str, Kinds]) -> dict[str, Kinds]:
    """The kinds by parameter, from the parameters of a kind in one string each."""
    return {name: kind for names, kind in kinds.items() for name in names.split()}


def known(sent: Mapping[str, Any], allowed: Mapping[str, Kinds]) -> None:
    """Refuses a parameter that the API does not have, or that has another type."""
    for name, value in sent.items():
        if name not in allowed:
            raise ApiRefusal(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
        typed(name, value, allowed[name])


def typed(param: str, value: Any, kinds: Kinds) -> None:
    allowed, words = kinds
    fits = isinstance(value, allowed) and (bool in allowed or not isinstance(value, bool))
    if value is not None and not fits:
        raise wrong_type(param, words, value)


def required(param: str, value: Any, kinds: Kinds) -> None:
    if value is None:
        raise missing(param)
    typed(param, value, kinds)


def one_of(param: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise unsupported(param, value, allowed)


def name(param: str, value: Any) -> None:
    required(param, value or None, STRING)
    if not NAME.fullmatch(value):
        raise ApiRefusal(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches "
            "the pattern '^[a-zA-Z0-9_-]+$'.",
            param,
            "invalid_value",
        )


def call_id(param: str, value: Any) -> None:
    required(param, value, STRING)
    if not value:
        raise ApiRefusal(
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, "
            "but got an empty string instead.",
            param,
            "empty_string",
        )
    if len(value) > LONGEST_ID:
        raise ApiRefusal(
            f"Invalid '{param}': string too long. Expected a string with maximum length "
            f"{LONGEST_ID}, but got a string with length {len(value)} instead.",
            param,
            "string_above_max_length",
        )


def function(param: str, told: Mapping[str, Any]) -> None:
    """A function that is offered as a tool: its name, and its schema where it is strict."""
    name(f"{param}.name", told.get("name"))
    words = schemas.complaint(told.get("parameters") or {}) if told.get("strict") else None
    if words:
        message = f"Invalid schema for function '{told['name']}': {words}"
        raise ApiRefusal(message, f"{param}.parameters", "invalid_function_parameters")


def answer_schema(param: str, told: Mapping[str, Any], schema_param: str) -> None:
    """The schema that the answer is to follow."""
    name(f"{param}.name", told.get("name"))
    words = schemas.complaint(told.get("schema") or {}) if told.get("strict") else None
    if words:
        message = f"Invalid schema for response_format '{told['name']}': {words}"
        raise ApiRefusal(message, schema_param, "invalid_json_schema")


def sent_again(where: str, tools: bool, instructions: bool) -> None:
    """Stricter than the vendor: what is not carried over must come with calls in the history."""
    for what, there in (("tools", tools), ("instructions", instructions)):
        if not there:
            raise ApiRefusal(SEND_AGAIN.format(where=where, what=what), what)
