"""How calls and results stand in the conversation that goes back to the model.

Ids are derived from the question's own id, so a step that runs again replaces its messages instead
of adding to them.
"""

import re
from hashlib import blake2b
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic_core import to_json

from agent.calls import ToolCall, ToolResult, output_of
from agent.plain import is_plain

# Vendors refuse a request whose history names a tool in another way; the call's error says how.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# What goes back to the vendor as it came. Free words beside calls would reach people unchecked.
KEPT = {"reasoning", "thinking", "redacted_thinking", "function_call"}


def asking(response: AIMessage, calls: list[ToolCall], question_id: str) -> AIMessage:
    """The response as history: its reasoning and its calls, arguments in strict JSON."""
    asked = {call["call_id"]: call for call in calls}
    blocks = response.content if isinstance(response.content, list) else []
    return AIMessage(
        content=[_block(block, asked) for block in blocks if _is_kept(block)] or "",
        tool_calls=[
            {
                "type": "tool_call",
                "id": call["call_id"],
                "name": _name(call["name"]),
                "args": _object(call),
            }
            for call in calls
        ],
        response_metadata={"id": calls[0]["response_id"]},
        id=_id(question_id, calls[0]["round"]),
    )


def telling(call: ToolCall, result: ToolResult, question_id: str) -> ToolMessage:
    """One result, under the id of its call."""
    return ToolMessage(
        content=to_json(output_of(result)).decode(),
        tool_call_id=call["call_id"],
        name=_name(call["name"]),
        status="success" if result["status"] == "ok" else "error",
        id=_id(question_id, call["round"], call["call_id"]),
    )


def saying(text: str, question_id: str, response_id: str, *, aside: bool = False) -> AIMessage:
    """What the customer reads. `aside`: to a question that did not become part of the thread.

    response_id: of the model's own last message, where a vendor that keeps it goes on from.
    """
    return AIMessage(
        content=text,
        response_metadata={"id": response_id} if response_id else {},
        additional_kwargs={"aside": True} if aside else {},
        id=_id(question_id, "answer"),
    )


def is_aside(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and bool(message.additional_kwargs.get("aside"))


def _id(*parts: object) -> str:
    """The same for the same parts, and no id that a client or a model could have chosen."""
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _object(call: ToolCall) -> dict[str, Any]:
    """Arguments that were no JSON go back empty; their raw text stands in the call's error."""
    return call["arguments"] if isinstance(call["arguments"], dict) else {}


def _name(name: str) -> str:
    return name if NAME.fullmatch(name) else "unknown_tool"


def _is_kept(block: str | dict[str, Any]) -> bool:
    return isinstance(block, dict) and str(block.get("type")) in KEPT and is_plain(block)


def _block(block: Any, asked: dict[str, ToolCall]) -> dict[str, Any]:
    kept = {name: value for name, value in block.items() if name != "index"}
    if block["type"] == "function_call":
        kept["name"] = _name(block["name"])
        kept["arguments"] = to_json(_object(asked[block["call_id"]])).decode()
    return kept
