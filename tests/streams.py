"""Streams of the three protocols, written as the vendors document them; all data is invented.

A stream is a list of events: what comes first, a lane of events for each item, which may be mixed
with the others, and what comes last.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "error": None}
CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}


@dataclass(frozen=True)
class Call:
    """A call as the model writes it; `pieces` are its arguments as they are streamed."""

    call_id: str
    name: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Stream:
    """ends: which event of `last` makes the response complete."""

    first: list[Event]
    lanes: list[list[Event]]
    last: list[Event]
    ends: int = -1
    done: bool = False

    @property
    def events(self) -> list[Event]:
        return [*self.first, *(event for lane in self.lanes for event in lane), *self.last]

    def mixed(self, order: Iterable[int]) -> list[Event]:
        """All events, each next one of the middle from the lane that `order` names."""
        lanes = [list(lane) for lane in self.lanes]
        middle = [lanes[n].pop(0) for n in order if n < len(lanes) and lanes[n]]
        return [*self.first, *middle, *(e for lane in lanes for e in lane), *self.last]


def frames(events: Iterable[Event], *, done: bool = False) -> list[bytes]:
    """The body, an event an element."""
    told = [
        (f"event: {event['type']}\n" if "type" in event else "")
        + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    ]
    return [each.encode() for each in (*told, *(["data: [DONE]\n\n"] if done else []))]


def responses(calls: Sequence[Call], text: str = "", **usage: int) -> Stream:
    items = [_item(number, call) for number, call in enumerate(calls)]
    lanes = [_lane(number, call) for number, call in enumerate(calls)]
    if text:
        items.append(_said(text))
        lanes.append(_said_lane(len(calls), text))
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    used = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, **usage}
    ended = {**RESPONSE, "status": "completed", "output": items, "usage": used}
    return Stream(
        [{"type": "response.created", "response": begun}],
        lanes,
        [{"type": "response.completed", "response": ended}],
    )


def _item(number: int, call: Call) -> Event:
    about = {"type": "function_call", "id": f"fc_{number}", "call_id": call.call_id}
    return {**about, "name": call.name, "arguments": call.text, "status": "completed"}


def _lane(index: int, call: Call) -> list[Event]:
    item, at = _item(index, call), {"output_index": index, "item_id": f"fc_{index}"}
    begun = {**item, "arguments": "", "status": "in_progress"}
    name = "response.function_call_arguments"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *({"type": f"{name}.delta", **at, "delta": piece} for piece in call.pieces),
        {"type": f"{name}.done", **at, "arguments": call.text},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _said(text: str) -> Event:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    about = {"type": "message", "id": "msg_9", "role": "assistant", "status": "completed"}
    return {**about, "content": [part]}


def _said_lane(index: int, text: str) -> list[Event]:
    item, at = _said(text), {"output_index": index, "item_id": "msg_9", "content_index": 0}
    begun, name = {**item, "content": [], "status": "in_progress"}, "response.output_text"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *({"type": f"{name}.delta", **at, "delta": piece, "logprobs": []} for piece in text),
        {"type": f"{name}.done", **at, "text": text, "logprobs": []},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def chat(calls: Sequence[Call], text: str = "", **usage: int) -> Stream:
    lanes = [
        [
            fragment(number, call.name, id=call.call_id, type="function"),
            *(fragment(number, arguments=piece) for piece in call.pieces),
        ]
        for number, call in enumerate(calls)
    ]
    lanes += [[chunk({"content": piece}) for piece in text]] if text else []
    used = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, **usage}
    end = chunk({}, finish_reason="tool_calls" if calls else "stop")
    return Stream(
        [chunk({"role": "assistant", "content": None if calls else ""})],
        lanes,
        [end, {**CHUNK, "choices": [], "usage": used}],
        ends=-2,
        done=True,
    )


def chunk(delta: Event, **choice: Any) -> Event:
    about = {"index": 0, "logprobs": None, "finish_reason": None}
    return {**CHUNK, "choices": [{**about, "delta": delta, **choice}]}


def fragment(index: int | None, name: str = "", arguments: str = "", **more: Any) -> Event:
    """One fragment of a call; without an index where that is None."""
    function = {**({"name": name} if name else {}), "arguments": arguments}
    at = {} if index is None else {"index": index}
    return chunk({"tool_calls": [{**at, **more, "function": function}]})


def messages(calls: Sequence[Call], text: str = "", **usage: int) -> Stream:
    lanes = [
        _block(
            number,
            {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}},
            [{"type": "input_json_delta", "partial_json": piece} for piece in call.pieces],
        )
        for number, call in enumerate(calls)
    ]
    if text:
        deltas = [{"type": "text_delta", "text": piece} for piece in text]
        lanes.append(_block(len(calls), {"type": "text", "text": ""}, deltas))
    begun: Event = {**MESSAGE, "content": [], "stop_reason": None, "stop_sequence": None}
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    used = {"input_tokens": 10, "output_tokens": 2, **usage}
    return Stream(
        [{"type": "message_start", "message": {**begun, "usage": {**used, "output_tokens": 1}}}],
        lanes,
        [{"type": "message_delta", "delta": end, "usage": used}, {"type": "message_stop"}],
    )


def _block(index: int, block: Event, deltas: list[Event]) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


BUILD: dict[str, Callable[..., Stream]] = {
    "responses": responses,
    "chat": chat,
    "messages": messages,
}
PATHS = {"responses": "/responses", "chat": "/chat/completions", "messages": "/messages"}
