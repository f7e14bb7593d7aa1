"""What the Responses API refuses before its model reads a word.

Source: the official SDK's types (`openai.types.responses`) for the shapes, and the API's own error
messages as clients report them. Two rules are stricter than the vendor's: tools and instructions
must come with every request whose input holds calls, and a request that goes on from a kept
response must itself be kept.
"""

from typing import Any

from offline_model import fields, reasoning
from offline_model.errors import ApiRefusal
from offline_model.store import Item, ResponseStore

PARAMETERS = fields.parameters(
    {
        "model instructions previous_response_id prompt_cache_key prompt_cache_retention "
        "safety_identifier service_tier truncation user": fields.STRING,
        "input": fields.TEXT,
        "text metadata reasoning stream_options prompt": fields.OBJECT,
        "tools context_management": fields.OBJECTS,
        "include": fields.STRINGS,
        "stream store parallel_tool_calls background": fields.BOOLEAN,
        "temperature top_p": fields.DECIMAL,
        "top_logprobs max_output_tokens max_tool_calls": fields.INTEGER,
        "tool_choice conversation": fields.CHOICE,
    }
)
ROLES = ("user", "assistant", "system", "developer")
FORMATS = ("text", "json_object", "json_schema")
ID_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
ITEM_TYPES = (*ID_PREFIXES, "function_call_output")
NOT_KEPT = (
    "Unsupported value: 'store' is not supported with 'previous_response_id' when it is false. A "
    "conversation goes on from a response that was kept; send the whole input instead."
)


def check(sent: dict[str, Any]) -> None:
    """Raises the refusal of a request whose own parts are wrong, whatever went before."""
    fields.known(sent, PARAMETERS)
    for name in ("model", "input"):
        fields.required(name, sent.get(name), PARAMETERS[name])
    if sent.get("previous_response_id") and sent.get("store") is False:
        raise ApiRefusal(NOT_KEPT, "store", "unsupported_value")
    for number, tool in enumerate(sent.get("tools") or ()):
        _tool(f"tools[{number}]", tool)
    _answer_format((sent.get("text") or {}).get("format") or {"type": "text"})
    for number, item in enumerate(sent["input"] if isinstance(sent["input"], list) else ()):
        _item(f"input[{number}]", item)


def check_items(sent: dict[str, Any], items: list[Item], store: ResponseStore) -> None:
    """Raises the refusal of a conversation: what was kept of it and what the request adds."""
    seen: set[str] = set()
    for item in items:
        if item.get("id") in seen:
            raise ApiRefusal(
                f"Duplicate item found with id {item['id']}. Remove duplicate items from your "
                "input and try again.",
                "input",
            )
        seen |= {item["id"]} if item.get("id") else set()
    reasoning.check(items, store.holds)
    pairs(items)
    if any(item.get("type") == "function_call" for item in items):
        system = any(item.get("role") in ("system", "developer") for item in items)
        told = bool(sent.get("instructions")) or system
        fields.sent_again("input holds", bool(sent.get("tools")), told)


def _tool(param: str, tool: Any) -> None:
    fields.required(param, tool, fields.OBJECT)
    fields.one_of(f"{param}.type", tool.get("type"), ("function",))
    fields.function(param, tool)


def _answer_format(form: Item) -> None:
    fields.one_of("text.format.type", form.get("type"), FORMATS)
    if form["type"] == "json_schema":
        fields.answer_schema("text.format", form, "text.format.schema")


def _item(param: str, item: Any) -> None:
    fields.required(param, item, fields.OBJECT)
    kind = item.get("type", "message")
    fields.one_of(param, kind, ITEM_TYPES)
    _item_id(f"{param}.id", item.get("id"), ID_PREFIXES.get(kind, ""))
    if kind == "message":
        fields.one_of(f"{param}.role", item.get("role"), ROLES)
        fields.required(f"{param}.content", item.get("content"), fields.TEXT)
    if kind.startswith("function_call"):
        fields.call_id(f"{param}.call_id", item.get("call_id"))
    if kind == "function_call":
        fields.name(f"{param}.name", item.get("name"))
        fields.required(f"{param}.arguments", item.get("arguments"), fields.STRING)
    if kind == "function_call_output":
        fields.required(f"{param}.output", item.get("output"), fields.TEXT)
    if kind == "reasoning":
        fields.required(f"{param}.id", item.get("id"), fields.STRING)
        fields.required(f"{param}.summary", item.get("summary"), fields.OBJECTS)
        fields.typed(f"{param}.encrypted_content", item.get("encrypted_content"), fields.STRING)


def _item_id(param: str, item_id: Any, prefix: str) -> None:
    fields.typed(param, item_id, fields.STRING)
    if item_id is not None and not item_id.startswith(prefix):
        message = f"Invalid '{param}': '{item_id}'. Expected an ID that begins with '{prefix}'."
        raise ApiRefusal(message, param, "invalid_value")


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
