"""Which of a model's calls may run at all: promise P2, for any chat model.

A response that did not end as completed, or whose calls cannot be told apart, raises
`BrokenResponse`: nothing of it runs and the model is asked again. A call whose arguments are not
strict JSON keeps its raw text as arguments and becomes an error of its own later.
"""

import json
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic_core import from_json, to_json

from agent.calls import ToolCall
from agent.plain import is_plain, is_text
from agent.strict import SEAL, sealed
from agent.wire.assemble import word
from agent.wire.names import ENDED

END_NAMES = ("status", "finish_reason", "stop_reason", "done_reason", "stopReason")
STATES_ITS_END = {"openai", "anthropic"}


class BrokenResponse(Exception):
    """A response of which nothing may be used: `stream_interrupted` or `ambiguous_calls`.

    usage: what it used nevertheless; None where the vendor has not said so.
    """

    def __init__(self, kind: str, message: str, usage: dict[str, int] | None = None) -> None:
        super().__init__(message)
        self.kind, self.usage = kind, usage


def admit(message: AIMessage, *, round: int) -> list[ToolCall]:
    """The calls of a completed response, in request order, each with its own id.

    Raises BrokenResponse when the response was cut, or an id is empty or stands for two calls.
    """
    _check_end(message)
    written = _written(message)
    calls = [
        ToolCall(
            call_id=call["id"] or "",
            item_id=written[call["id"]].item_id if call["id"] in written else "",
            name=call["name"] or "",
            arguments=_arguments(written.get(call["id"] or ""), call["args"]),
            round=round,
            response_id=response_id(message),
        )
        for call in _in_request_order(message, list(written))
    ]
    _check_ids(calls, written)
    return calls


def _check_ids(calls: list[ToolCall], written: dict[str, "Written"]) -> None:
    """Each id stands for one call, and the client has lost or renamed none of them."""
    ids = [call["call_id"] for call in calls]
    if not all(ids) or len(set(ids)) != len(ids) or not all(map(is_text, ids)):
        raise BrokenResponse("ambiguous_calls", "Two calls of one response share an id.")
    names = {call["call_id"]: call["name"] for call in calls}
    if any(names.get(id_) != call.name for id_, call in written.items()):
        raise BrokenResponse("ambiguous_calls", "The client lost or renamed a call.")


def response_id(message: AIMessage) -> str:
    """The vendor's id of a response, "" where it has none."""
    return str(message.response_metadata.get("id") or message.id or "")


def _check_end(message: AIMessage) -> None:
    metadata = message.response_metadata
    end = next((metadata[name] for name in END_NAMES if metadata.get(name)), None)
    if end is None and metadata.get("model_provider") in STATES_ITS_END:
        raise BrokenResponse("stream_interrupted", "The response broke off before its end.")
    if end is not None and str(end).lower() not in ENDED:
        raise BrokenResponse("stream_interrupted", f"The response ended as {word(end)}.")


def _in_request_order(message: AIMessage, written: list[str]) -> list[dict[str, Any]]:
    """As the model ordered them: LangChain puts calls that it cannot parse into another list."""
    calls: list[dict[str, Any]] = [
        *map(dict, message.tool_calls),
        *map(dict, message.invalid_tool_calls),
    ]
    order = {id_: place for place, id_ in enumerate(written)}
    return sorted(calls, key=lambda call: order.get(call["id"] or "", len(order)))


@dataclass(frozen=True)
class Written:
    """A call as the model wrote it, before any client parsed it."""

    item_id: str
    name: str
    arguments: str


def _written(message: AIMessage) -> dict[str, Written]:
    """The calls by id, where the message still carries their text. Raises BrokenResponse."""
    found: dict[str, Written] = {}
    for source in (_from_kwargs(message), _from_chunks(message), _from_blocks(message)):
        if len(dict(source)) != len(source):
            raise BrokenResponse("ambiguous_calls", "Two calls of one response share an id.")
        found |= dict(source)
    return found


def _from_kwargs(message: AIMessage) -> list[tuple[str, Written]]:
    return [
        (str(call.get("id")), Written("", call["function"]["name"], call["function"]["arguments"]))
        for call in message.additional_kwargs.get("tool_calls") or ()
    ]


def _from_chunks(message: AIMessage) -> list[tuple[str, Written]]:
    chunks = message.tool_call_chunks if isinstance(message, AIMessageChunk) else ()
    return [
        (chunk["id"] or "", Written("", chunk["name"] or "", chunk["args"] or ""))
        for chunk in chunks
    ]


def _from_blocks(message: AIMessage) -> list[tuple[str, Written]]:
    """The items of the Responses API."""
    blocks = message.content if isinstance(message.content, list) else ()
    return [
        (
            str(block.get("call_id")),
            Written(block.get("id") or "", block.get("name") or "", block.get("arguments") or ""),
        )
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "function_call"
    ]


def _arguments(written: Written | None, parsed: Any) -> dict[str, Any] | str:
    """Strictly from the text; what another client parsed is brought into the same form."""
    if written is None and isinstance(parsed, dict) and is_plain(parsed):
        return dict(from_json(to_json(parsed)))
    text = written.arguments if written else parsed
    text = text if isinstance(text, str) else json.dumps(text)
    arguments = sealed(text)
    if list(arguments) != [SEAL]:
        return arguments
    text = str(arguments[SEAL])
    return text if is_text(text) else repr(text)
