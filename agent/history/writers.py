"""How a history stands in the JSON of each protocol."""

import json
from collections.abc import Iterator
from typing import Any

from agent.history.model import History, Part
from agent.wire.names import Name

Raw = dict[str, Any]

RESULT_ID: dict[Name, str] = {
    "chat": "tool_call_id", "responses": "call_id", "messages": "tool_use_id",
}  # fmt: skip
LIST: dict[Name, str] = {"chat": "messages", "responses": "input", "messages": "messages"}


def result_of(protocol: Name, call: Part, value: Any) -> Raw:
    """The result of a call, whatever JSON value it is, as its text."""
    failed = isinstance(value, dict) and value.get("status") == "error"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return written_result(protocol, call.id, call.form, text, failed=failed)


def written_result(
    protocol: Name, id_: str, form: str, content: str | list[Raw], *, failed: bool = False
) -> Raw:
    """form: what kind of call it is the result of."""
    if protocol == "chat":
        return {"role": "tool", "tool_call_id": id_, "content": content}
    if protocol == "responses":
        kind = "custom_tool_call" if form == "custom" else f"{form}_call"
        return {"type": f"{kind}_output", "call_id": id_, "output": content}
    failure = {"is_error": True} if failed else {}
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **failure}


def written_call(protocol: Name, call: Part, arguments: Any) -> Raw:
    """A call that takes a JSON object, or in OpenAI's protocols free text (`custom`)."""
    custom, name = call.form == "custom", call.name
    if protocol == "messages":
        return {"type": "tool_use", "id": call.id, "name": name, "input": arguments}
    said = {"name": name, "input" if custom else "arguments": arguments}
    if protocol == "chat":
        kind = "custom" if custom else "function"
        return {"id": call.id, "type": kind, kind: said}
    return {"type": "custom_tool_call" if custom else "function_call", "call_id": call.id, **said}


def grouped(protocol: Name, results: list[Raw], message: Raw | None = None) -> Iterator[Raw]:
    """Results as messages: in Messages the blocks of one, else each is one itself."""
    if protocol != "messages":
        yield from results
    elif results:
        yield {**(message or {"role": "user"}), "content": results}


def within(history: History, messages: list[Raw]) -> Any:
    """The document with other messages."""
    return {**history.document, history.key: messages} if history.key else messages
