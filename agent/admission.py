"""Which of a model's calls may run at all: promise P2, for any chat model.

A response that did not end as completed, or whose calls cannot be told apart, raises
`BrokenResponse`: nothing of it runs and the model is asked again. A call whose arguments are not
strict JSON keeps its raw text as arguments and becomes an error of its own later.
"""

import json
from decimal import Decimal
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk

from agent.calls import ToolCall

ENDED = {
    "completed",
    "stop",
    "tool_calls",
    "function_call",
    "end_turn",
    "tool_use",
    "stop_sequence",
}
END_NAMES = ("status", "finish_reason", "stop_reason", "done_reason", "stopReason")
STATES_ITS_END = {"openai", "anthropic"}
DEPTH = 32
INTEGERS = range(-(2**63), 2**64)  # what a checkpoint can hold


class BrokenResponse(Exception):
    """A response of which nothing may be used: `stream_interrupted` or `ambiguous_calls`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class NotStrictJson(ValueError):
    """Arguments that a lenient reader might accept, each reader in its own way."""


def admit(message: AIMessage, *, round: int) -> list[ToolCall]:
    """The calls of a completed response, in request order, each with its own id.

    Raises BrokenResponse when the response was cut, or an id is empty or stands for two calls.
    """
    _check_end(message)
    raw = _raw_arguments(message)
    calls = [
        ToolCall(
            call_id=call["id"] or "",
            item_id=raw.get(call["id"] or "", ("", ""))[0],
            name=call["name"] or "",
            arguments=_arguments(raw.get(call["id"] or "", ("", None))[1], call["args"]),
            round=round,
            response_id=response_id(message),
        )
        for call in _in_request_order(message)
    ]
    ids = [call["call_id"] for call in calls]
    if not all(ids) or len(set(ids)) != len(ids):
        raise BrokenResponse("ambiguous_calls", "Two calls of one response share an id.")
    if not set(raw) <= set(ids):
        raise BrokenResponse("ambiguous_calls", "The client lost a call of the response.")
    return calls


def response_id(message: AIMessage) -> str:
    """The vendor's id of a response, "" where it has none."""
    return str(message.response_metadata.get("id") or message.id or "")


def parse_strictly(text: str) -> dict[str, Any]:
    """Read a JSON object as every conforming reader would; "" is the empty object.

    Raises NotStrictJson for anything else: a repeated key, a second value behind the first,
    a number that would lose digits, a list, null.
    """
    try:
        value = json.loads(
            text if text.strip() else "{}",
            object_pairs_hook=_unique,
            parse_constant=_refuse,
            parse_float=_exact,
            parse_int=_whole,
        )
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotStrictJson(f"The arguments are not one JSON object ({error}).") from None
    if not isinstance(value, dict):
        raise NotStrictJson("The arguments are not a JSON object.")
    if not _is_flat(value, DEPTH):
        raise NotStrictJson("The arguments are nested too deeply.")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotStrictJson("The arguments hold half of a character.") from None
    return value


def _is_flat(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(each, levels - 1) for each in inner)


def _check_end(message: AIMessage) -> None:
    metadata = message.response_metadata
    end = next((metadata[name] for name in END_NAMES if metadata.get(name)), None)
    if end is None and metadata.get("model_provider") in STATES_ITS_END:
        raise BrokenResponse("stream_interrupted", "The response broke off before its end.")
    if end is not None and str(end).lower() not in ENDED:
        raise BrokenResponse("stream_interrupted", f"The response ended as {end!r}.")


def _in_request_order(message: AIMessage) -> list[dict[str, Any]]:
    """As the model ordered them: LangChain puts calls that it cannot parse into another list."""
    calls: list[dict[str, Any]] = [
        *map(dict, message.tool_calls),
        *map(dict, message.invalid_tool_calls),
    ]
    order = {id_: place for place, id_ in enumerate(_raw_arguments(message))}
    return sorted(calls, key=lambda call: order.get(call["id"] or "", len(order)))


def _raw_arguments(message: AIMessage) -> dict[str, tuple[str, str]]:
    """(item id, argument text) by call id, where the message still carries what the model wrote."""
    raw: dict[str, tuple[str, str]] = {}
    for call in message.additional_kwargs.get("tool_calls", ()):
        raw[call.get("id", "")] = ("", call["function"]["arguments"])
    for chunk in message.tool_call_chunks if isinstance(message, AIMessageChunk) else ():
        raw[chunk["id"] or ""] = ("", chunk["args"] or "")
    for block in message.content if isinstance(message.content, list) else ():
        if isinstance(block, dict) and block.get("type") == "function_call":
            raw[block.get("call_id", "")] = (block.get("id") or "", block.get("arguments") or "")
    return raw


def _arguments(text: str | None, parsed: Any) -> dict[str, Any] | str:
    """Strictly from the text; what another client parsed is brought into the same form."""
    written = text if text is not None else parsed
    written = written if isinstance(written, str) else json.dumps(written)
    try:
        return parse_strictly(written)
    except NotStrictJson:
        return written


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise NotStrictJson("The arguments name one key twice.")
    return dict(pairs)


def _refuse(constant: str) -> None:
    raise NotStrictJson(f"{constant} is not JSON.")


def _exact(text: str) -> float:
    if not Decimal(text) == Decimal(repr(float(text))):
        raise NotStrictJson(f"The number {text[:40]} would lose digits.")
    return float(text)


def _whole(text: str) -> int:
    if len(text) > 20 or int(text) not in INTEGERS:
        raise NotStrictJson(f"The number {text[:40]} is too large.")
    return int(text)
