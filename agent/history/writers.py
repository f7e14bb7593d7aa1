"""How calls and results stand in the JSON of each protocol."""

import json
from typing import Any

from agent.history.model import Part, Raw
from agent.history.readers import RESULT_ID
from agent.wire.names import Name


def result_of(protocol: Name, call: Part, value: Any) -> Raw:
    """The result of a call, whatever JSON value it is, as its text."""
    result = written_result(protocol, call, compact(value))
    failed = isinstance(value, dict) and value.get("status") == "error"
    return {**result, "is_error": True} if failed and protocol == "messages" else result


def written_result(protocol: Name, call: Part, content: str | list[Raw]) -> Raw:
    about = {RESULT_ID[protocol]: call.id}
    if protocol == "chat":
        return {"role": "tool", **about, "content": content}
    if protocol == "messages":
        return {"type": "tool_result", **about, "content": content}
    kind = "custom_tool_call" if call.form == "custom" else "function_call"
    return {"type": f"{kind}_output", **about, "output": content}


def written_call(protocol: Name, call: Part, arguments: Any) -> Raw:
    """A call that takes a JSON object, or in OpenAI's protocols free text (`custom`)."""
    if protocol == "messages":
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
    said = {"name": call.name, "input" if call.form == "custom" else "arguments": arguments}
    if protocol == "chat":
        return {"id": call.id, "type": call.form, call.form: said}
    kind = "custom_tool_call" if call.form == "custom" else "function_call"
    return {"type": kind, "call_id": call.id, **said}


def grouped(protocol: Name, results: list[Raw], message: Raw | None = None) -> list[Raw]:
    """Results as messages: in Messages the blocks of one, else each is one itself."""
    if protocol != "messages" or not results:
        return results
    return [{**(message or {"role": "user"}), "content": results}]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
