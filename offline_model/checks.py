"""What the Responses API refuses before its model reads a word.

Source: the official SDK's types (`openai.types.responses`) for the shapes, and the API's own error
messages as clients report them. One rule is stricter than the vendor's and says so in its words:
tools and instructions must come with every request whose input holds calls.
"""

import re
from collections.abc import Iterator
from typing import Any

from offline_model import schemas
from offline_model.errors import ApiRefusal, missing, wrong_type

Item = dict[str, Any]

# Parameter → the type it must have, and the API's word for that type; None is always allowed.
TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "model": (str, "a string"),
    "input": ((str, list), "one of an array of objects or a string"),
    "instructions": (str, "a string"),
    "tools": (list, "an array of objects"),
    "text": (dict, "an object"),
    "stream": (bool, "a boolean"),
    "store": (bool, "a boolean"),
    "parallel_tool_calls": (bool, "a boolean"),
    "background": (bool, "a boolean"),
    "temperature": ((int, float), "a decimal"),
    "top_p": ((int, float), "a decimal"),
    "top_logprobs": (int, "an integer"),
    "max_output_tokens": (int, "an integer"),
    "max_tool_calls": (int, "an integer"),
    "tool_choice": ((str, dict), "one of an object or a string"),
    "previous_response_id": (str, "a string"),
    "prompt_cache_key": (str, "a string"),
    "prompt_cache_retention": (str, "a string"),
    "safety_identifier": (str, "a string"),
    "service_tier": (str, "a string"),
    "truncation": (str, "a string"),
    "user": (str, "a string"),
    "include": (list, "an array of strings"),
    "metadata": (dict, "an object"),
    "reasoning": (dict, "an object"),
    "stream_options": (dict, "an object"),
    "conversation": ((str, dict), "one of an object or a string"),
    "prompt": (dict, "an object"),
    "context_management": (list, "an array of objects"),
}
ROLES = ("user", "assistant", "system", "developer")
ID_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
ITEM_TYPES = (*ID_PREFIXES, "function_call_output")
NAME = re.compile(r"[a-zA-Z0-9_-]+")
SEND_AGAIN = (
    "The input holds function calls, but the request came without {what}. Tools and instructions "
    "are not carried over: {what} must be sent again with every request."
)


def check(sent: dict[str, Any]) -> None:
    """Raises the refusal that the API would answer a request with, if any."""
    _parameters(sent)
    _previous(sent)
    for number, tool in enumerate(sent.get("tools") or ()):
        _tool(f"tools[{number}]", tool)
    _answer_format(sent)
    items = sent["input"] if isinstance(sent["input"], list) else []
    for number, item in enumerate(items):
        _item(f"input[{number}]", item)
    _unique_ids(items)
    pairs(items)
    _complete(sent, items)


def _parameters(sent: dict[str, Any]) -> None:
    for name, value in sent.items():
        if name not in TYPES:
            raise ApiRefusal(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
        _typed(name, value, *TYPES[name])
    for name in ("model", "input"):
        if sent.get(name) is None:
            raise missing(name)


def _typed(param: str, value: Any, kinds: type | tuple[type, ...], words: str) -> None:
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    fits = isinstance(value, allowed) and not (isinstance(value, bool) and bool not in allowed)
    if value is not None and not fits:
        raise wrong_type(param, words, value)


def _previous(sent: dict[str, Any]) -> None:
    # Nothing is stored yet, so no id is known: the place where kept responses will be looked up.
    previous = sent.get("previous_response_id")
    if previous:
        raise ApiRefusal(
            f"Previous response with id '{previous}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )


def _tool(param: str, tool: Any) -> None:
    if not isinstance(tool, dict):
        raise wrong_type(param, "an object", tool)
    if tool.get("type") != "function":
        raise _unsupported(f"{param}.type", tool.get("type"), ("function",))
    _name(f"{param}.name", tool.get("name"))
    parameters = tool.get("parameters") or {}
    words = schemas.complaint(parameters) if tool.get("strict") else None
    if words:
        raise ApiRefusal(
            f"Invalid schema for function '{tool['name']}': {words}",
            param=f"{param}.parameters",
            code="invalid_function_parameters",
        )


def _answer_format(sent: dict[str, Any]) -> None:
    form = (sent.get("text") or {}).get("format") or {"type": "text"}
    if form.get("type") not in ("text", "json_object", "json_schema"):
        kinds = ("text", "json_object", "json_schema")
        raise _unsupported("text.format.type", form.get("type"), kinds)
    if form["type"] != "json_schema":
        return
    _name("text.format.name", form.get("name"))
    words = schemas.complaint(form.get("schema") or {}) if form.get("strict") else None
    if words:
        raise ApiRefusal(
            f"Invalid schema for response_format '{form['name']}': {words}",
            param="text.format.schema",
            code="invalid_json_schema",
        )


def _name(param: str, name: Any) -> None:
    if not name:
        raise missing(param)
    _typed(param, name, str, "a string")
    if not NAME.fullmatch(name):
        raise ApiRefusal(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches "
            "the pattern '^[a-zA-Z0-9_-]+$'.",
            param=param,
            code="invalid_value",
        )


def _unsupported(param: str, value: Any, allowed: tuple[str, ...]) -> ApiRefusal:
    listed = [f"'{name}'" for name in allowed]
    named = " and ".join([", ".join(listed[:-1]), listed[-1]] if listed[1:] else listed)
    message = f"Invalid value: '{value}'. Supported values are: {named}."
    return ApiRefusal(message, param=param, code="invalid_value")


def _item(param: str, item: Any) -> None:
    if not isinstance(item, dict):
        raise wrong_type(param, "an object", item)
    kind = item.get("type", "message")
    if kind not in ITEM_TYPES:
        raise _unsupported(param, kind, ITEM_TYPES)
    _item_id(f"{param}.id", item.get("id"), ID_PREFIXES.get(kind))
    if kind == "message":
        _message(param, item)
    if kind.startswith("function_call"):
        _call_id(f"{param}.call_id", item.get("call_id"))
    if kind == "function_call":
        _name(f"{param}.name", item.get("name"))
        _required(f"{param}.arguments", item.get("arguments"), str, "a string")
    if kind == "function_call_output":
        words = "one of an array of objects or a string"
        _required(f"{param}.output", item.get("output"), (str, list), words)


def _required(param: str, value: Any, kinds: type | tuple[type, ...], words: str) -> None:
    if value is None:
        raise missing(param)
    _typed(param, value, kinds, words)


def _item_id(param: str, item_id: Any, prefix: str | None) -> None:
    if item_id is None:
        return
    _typed(param, item_id, str, "a string")
    if prefix and not item_id.startswith(prefix):
        raise ApiRefusal(
            f"Invalid '{param}': '{item_id}'. Expected an ID that begins with '{prefix}'.",
            param=param,
            code="invalid_value",
        )


def _call_id(param: str, call_id: Any) -> None:
    _required(param, call_id, str, "a string")
    if not call_id:
        raise ApiRefusal(
            f"Invalid '{param}': empty string. Expected a string with minimum length 1, "
            "but got an empty string instead.",
            param=param,
            code="empty_string",
        )
    if len(call_id) > 64:
        raise ApiRefusal(
            f"Invalid '{param}': string too long. Expected a string with maximum length 64, "
            f"but got a string with length {len(call_id)} instead.",
            param=param,
            code="string_above_max_length",
        )


def _message(param: str, item: Item) -> None:
    if item.get("role") not in ROLES:
        raise _unsupported(f"{param}.role", item.get("role"), ROLES)
    words = "one of an array of objects or a string"
    _required(f"{param}.content", item.get("content"), (str, list), words)


def _unique_ids(items: list[Item]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.get("id") in seen:
            raise ApiRefusal(
                f"Duplicate item found with id {item['id']}. Remove duplicate items from your "
                "input and try again.",
                param="input",
            )
        seen.update([item["id"]] if item.get("id") else [])


def pairs(items: list[Item]) -> Iterator[tuple[Item, Item]]:
    """Each call with its output. An output answers the nearest open call of its id before it,
    so that ids may start again in a later round, as some servers' do."""
    open_calls: dict[str, Item] = {}
    answered: set[str] = set()
    found: list[tuple[Item, Item]] = []
    for item in items:
        kind, call_id = item.get("type", "message"), item.get("call_id", "")
        if kind == "function_call":
            if call_id in open_calls:
                raise ApiRefusal(f"Duplicate function_call for call_id '{call_id}'.", param="input")
            open_calls[call_id] = item
        elif kind == "function_call_output":
            found.append((_answered(call_id, open_calls, answered), item))
            answered.add(call_id)
        elif item.get("role") == "user":
            _none_open(open_calls)
    _none_open(open_calls)
    return iter(found)


def _answered(call_id: str, open_calls: dict[str, Item], answered: set[str]) -> Item:
    if call_id in open_calls:
        return open_calls.pop(call_id)
    if call_id in answered:
        raise ApiRefusal(
            f"Duplicate function_call_output for call_id '{call_id}'. Each function_call must "
            "have exactly one matching function_call_output.",
            param="input",
        )
    raise ApiRefusal(
        f"No tool call found for function call output with call_id {call_id}.", param="input"
    )


def _none_open(open_calls: dict[str, Item]) -> None:
    for call_id in open_calls:
        raise ApiRefusal(f"No tool output found for function call {call_id}.", param="input")


def _complete(sent: dict[str, Any], items: list[Item]) -> None:
    if not any(item.get("type") == "function_call" for item in items):
        return
    if not sent.get("tools"):
        raise ApiRefusal(SEND_AGAIN.format(what="tools"), param="tools")
    system = any(item.get("role") in ("system", "developer") for item in items)
    if not sent.get("instructions") and not system:
        raise ApiRefusal(SEND_AGAIN.format(what="instructions"), param="instructions")
