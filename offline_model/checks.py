"""What the Responses API refuses before its model reads a word.

Source: the official SDK's types (`openai.types.responses`) for the shapes, and the API's own error
messages as clients report them. One rule is stricter than the vendor's and says so in its words:
tools and instructions must come with every request whose input holds calls.
"""

import re
from typing import Any

from offline_model import schemas
from offline_model.errors import ApiRefusal, missing, unsupported, wrong_type

Item = dict[str, Any]
Kinds = tuple[tuple[type, ...], str]  # the types that a value may have, and the API's word for them

STRING: Kinds = ((str,), "a string")
OBJECT: Kinds = ((dict,), "an object")
OBJECTS: Kinds = ((list,), "an array of objects")
TEXT: Kinds = ((str, list), "one of an array of objects or a string")
PARAMETERS: dict[str, Kinds] = {
    name: kinds
    for kinds, names in (
        (STRING, "model instructions previous_response_id prompt_cache_key prompt_cache_retention"),
        (STRING, "safety_identifier service_tier truncation user"),
        (TEXT, "input"),
        (OBJECT, "text metadata reasoning stream_options prompt"),
        (OBJECTS, "tools context_management"),
        (((list,), "an array of strings"), "include"),
        (((bool,), "a boolean"), "stream store parallel_tool_calls background"),
        (((int, float), "a decimal"), "temperature top_p"),
        (((int,), "an integer"), "top_logprobs max_output_tokens max_tool_calls"),
        (((str, dict), "one of an object or a string"), "tool_choice conversation"),
    )
    for name in names.split()
}
ROLES = ("user", "assistant", "system", "developer")
FORMATS = ("text", "json_object", "json_schema")
ID_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
ITEM_TYPES = (*ID_PREFIXES, "function_call_output")
NAME = re.compile(r"[a-zA-Z0-9_-]+")
SEND_AGAIN = (
    "The input holds function calls, but the request came without {what}. Tools and instructions "
    "are not carried over: {what} must be sent again with every request."
)


def check(sent: dict[str, Any]) -> None:
    """Raises the refusal that the API would answer a request with, if any."""
    for name, value in sent.items():
        if name not in PARAMETERS:
            raise ApiRefusal(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
        _typed(name, value, PARAMETERS[name])
    for name in ("model", "input"):
        _required(name, sent.get(name), PARAMETERS[name])
    if previous := sent.get("previous_response_id"):  # nothing is kept, so no id is known
        message = f"Previous response with id '{previous}' not found."
        raise ApiRefusal(message, "previous_response_id", "previous_response_not_found")
    for number, tool in enumerate(sent.get("tools") or ()):
        _tool(f"tools[{number}]", tool)
    _answer_format((sent.get("text") or {}).get("format") or {"type": "text"})
    _input(sent, sent["input"] if isinstance(sent["input"], list) else [])


def _typed(param: str, value: Any, kinds: Kinds) -> None:
    allowed, words = kinds
    fits = isinstance(value, allowed) and (bool in allowed or not isinstance(value, bool))
    if value is not None and not fits:
        raise wrong_type(param, words, value)


def _required(param: str, value: Any, kinds: Kinds) -> None:
    if value is None:
        raise missing(param)
    _typed(param, value, kinds)


def _tool(param: str, tool: Any) -> None:
    _required(param, tool, OBJECT)
    if tool.get("type") != "function":
        raise unsupported(f"{param}.type", tool.get("type"), ("function",))
    _name(f"{param}.name", tool.get("name"))
    words = schemas.complaint(tool.get("parameters") or {}) if tool.get("strict") else None
    if words:
        message = f"Invalid schema for function '{tool['name']}': {words}"
        raise ApiRefusal(message, f"{param}.parameters", "invalid_function_parameters")


def _answer_format(form: Item) -> None:
    if form.get("type") not in FORMATS:
        raise unsupported("text.format.type", form.get("type"), FORMATS)
    if form["type"] != "json_schema":
        return
    _name("text.format.name", form.get("name"))
    words = schemas.complaint(form.get("schema") or {}) if form.get("strict") else None
    if words:
        message = f"Invalid schema for response_format '{form['name']}': {words}"
        raise ApiRefusal(message, "text.format.schema", "invalid_json_schema")


def _name(param: str, name: Any) -> None:
    _required(param, name or None, STRING)
    if not NAME.fullmatch(name):
        raise ApiRefusal(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches "
            "the pattern '^[a-zA-Z0-9_-]+$'.",
            param,
            "invalid_value",
        )


def _input(sent: dict[str, Any], items: list[Any]) -> None:
    seen: set[str] = set()
    for number, item in enumerate(items):
        _item(f"input[{number}]", item)
        if item.get("id") in seen:
            raise ApiRefusal(
                f"Duplicate item found with id {item['id']}. Remove duplicate items from your "
                "input and try again.",
                "input",
            )
        seen |= {item["id"]} if item.get("id") else set()
    pairs(items)
    if any(item.get("type") == "function_call" for item in items):
        _complete(sent, items)


def _item(param: str, item: Any) -> None:
    _required(param, item, OBJECT)
    kind = item.get("type", "message")
    if kind not in ITEM_TYPES:
        raise unsupported(param, kind, ITEM_TYPES)
    _item_id(f"{param}.id", item.get("id"), ID_PREFIXES.get(kind, ""))
    if kind == "message":
        if item.get("role") not in ROLES:
            raise unsupported(f"{param}.role", item.get("role"), ROLES)
        _required(f"{param}.content", item.get("content"), TEXT)
    if kind.startswith("function_call"):
        _call_id(f"{param}.call_id", item.get("call_id"))
    if kind == "function_call":
        _name(f"{param}.name", item.get("name"))
        _required(f"{param}.arguments", item.get("arguments"), STRING)
    if kind == "function_call_output":
        _required(f"{param}.output", item.get("output"), TEXT)


def _item_id(param: str, item_id: Any, prefix: str) -> None:
    _typed(param, item_id, STRING)
    if item_id is not None and not item_id.startswith(prefix):
        message = f"Invalid '{param}': '{item_id}'. Expected an ID that begins with '{prefix}'."
        raise ApiRefusal(message, param, "invalid_value")


def _call_id(param: str, call_id: Any) -> None:
    _required(param, call_id, STRING)
    if not call_id:
        raise ApiRefusal(
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, "
            "but got an empty string instead.",
            param,
            "empty_string",
        )
    if len(call_id) > 64:
        raise ApiRefusal(
            f"Invalid '{param}': string too long. Expected a string with maximum length 64, "
            f"but got a string with length {len(call_id)} instead.",
            param,
            "string_above_max_length",
        )


def pairs(items: list[Item]) -> list[tuple[Item, Item]]:
    """Each call with its output. An output answers the nearest open call of its id before it,
    so that ids may start again in a later round, as some servers' do."""
    waiting: dict[str, Item] = {}
    found: list[tuple[Item, Item]] = []
    for item in [*items, {"role": "user"}]:
        kind, call_id = item.get("type", "message"), item.get("call_id", "")
        if kind == "function_call":
            if call_id in waiting:
                raise ApiRefusal(f"Duplicate function_call for call_id '{call_id}'.", "input")
            waiting[call_id] = item
        elif kind == "function_call_output":
            if call_id not in waiting:
                raise _unasked(call_id, [call["call_id"] for call, _ in found])
            found.append((waiting.pop(call_id), item))
        elif item.get("role") == "user" and waiting:
            unanswered = next(iter(waiting))
            raise ApiRefusal(f"No tool output found for function call {unanswered}.", "input")
    return found


def _unasked(call_id: str, answered: list[str]) -> ApiRefusal:
    if call_id in answered:
        return ApiRefusal(
            f"Duplicate function_call_output for call_id '{call_id}'. Each function_call must "
            "have exactly one matching function_call_output.",
            "input",
        )
    message = f"No tool call found for function call output with call_id {call_id}."
    return ApiRefusal(message, "input")


def _complete(sent: dict[str, Any], items: list[Item]) -> None:
    if not sent.get("tools"):
        raise ApiRefusal(SEND_AGAIN.format(what="tools"), "tools")
    system = any(item.get("role") in ("system", "developer") for item in items)
    if not sent.get("instructions") and not system:
        raise ApiRefusal(SEND_AGAIN.format(what="instructions"), "instructions")
