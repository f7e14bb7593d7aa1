"""Anthropic's Messages API: content blocks by index.

Source: `anthropic.types.RawMessageStreamEvent` of the official SDK. A tool's input comes as the
text of a JSON object; where that text is none, or readers differ on it, the text itself stands in
the body as `input`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.strict import NotStrictJson, parse_strictly
from agent.wire import assemble
from agent.wire.assemble import Body, Call, Event, StreamInterrupted, joined, word

Block = dict[str, Any]

# A `stop_sequence` ends what the request wanted to end; a pause, a refusal, a full window do not.
ENDS = ("end_turn", "tool_use", "stop_sequence")
# What `message_delta` tells; the last of them beside its `delta`.
ENDED = ("stop_reason", "stop_sequence", "stop_details", "container", "context_management")
# The deltas of a block, by the field that they fill.
DELTAS = {
    "text": {"text": "text_delta"},
    "thinking": {"thinking": "thinking_delta", "signature": "signature_delta"},
    "compaction": {"content": "compaction_delta"},
}


@dataclass
class _Opened:
    block: Block
    call: Call | None
    pieces: dict[str, list[Any]] = field(default_factory=dict)
    done: bool = False


class Assembler(assemble.Assembler):
    """From `message_start` to `message_stop`."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._message: Body | None = None
        self._blocks: dict[int, _Opened] = {}
        self._end: Body = {}

    def _take(self, event: Event) -> None:
        kind = event["type"]
        if kind.startswith("content_block") and (self._message is None or self._ended):
            raise StreamInterrupted("A block came before the message began, or after it ended.")
        match kind:
            case "content_block_delta":
                self._delta(event)
            case "content_block_start":
                self._open(event["index"], event["content_block"])
            case "content_block_stop":
                self._close(self._at(event))
            case "message_start":
                if self._message is not None or event["message"]["content"]:
                    raise StreamInterrupted("The response began twice.")
                self._message = event["message"]
                self._count(event["message"])
            case "message_delta":
                told = {**event, **event["delta"]}
                if self._ended and told.get("stop_reason") not in (None, self._ended):
                    raise StreamInterrupted("The response ended twice.")
                self._end |= {n: v for n, v in told.items() if n in ENDED and v is not None}
                self._count(event)
            case "message_stop":
                self.ended = True
            case "error":
                code = word(event["error"]["type"])
                raise StreamInterrupted(f"The response reported an error ({code}).")

    @property
    def _ended(self) -> Any:
        return self._end.get("stop_reason")

    def _count(self, told: Body) -> None:
        """What is reported later holds what was reported before."""
        used = (told.get("usage") or {}).items()
        self.usage = {**(self.usage or {}), **{n: value for n, value in used if value is not None}}

    def _open(self, index: int, block: Block) -> None:
        if index in self._blocks:
            raise StreamInterrupted("Two blocks share one index.")
        call = Call(block["id"], block["name"]) if block["type"] == "tool_use" else None
        opened = self._blocks[index] = _Opened(block, call)
        if call:
            opened.pieces["partial_json"] = call.pieces
            self.calls.append(call)
            self._named(call)

    def _delta(self, event: Event) -> None:
        opened, delta = self._at(event), event["delta"]
        for name, value in delta.items():
            if name != "type" and value is not None:
                piece = value + "" if name == "partial_json" else value
                opened.pieces.setdefault(name, []).append(piece)

    def _close(self, opened: _Opened) -> None:
        opened.done = True
        if opened.call:
            given = opened.block.get("input")
            if given and opened.call.text and _input(opened.call.text) != given:
                raise self._broken(opened.call, "its pieces are not what it began with")
            opened.call.done = True

    def _at(self, event: Event) -> _Opened:
        opened = self._blocks.get(event["index"])
        if opened is None or opened.done:
            raise StreamInterrupted("An event is about a block that is not open.")
        return opened

    def _whole(self) -> Body:
        if self._message is None or not self.ended:
            raise StreamInterrupted("The stream ended before the response was completed.")
        blocks = [opened for _, opened in sorted(self._blocks.items())]
        if not all(opened.done for opened in blocks):
            raise StreamInterrupted("The response ended with a block that was not done.")
        content = {"content": list(map(_written, blocks)), "usage": self.usage or {}}
        check(body := {**self._message, **self._end, **content})
        return body


def check(body: Body) -> None:
    """Raises StreamInterrupted unless the message came to its natural end."""
    calls, end = list(arguments(body)), body.get("stop_reason")
    if end not in ENDS:
        raise StreamInterrupted(f"The response ended as {word(end)}.")
    if end == "tool_use" and not calls:
        raise StreamInterrupted("The response ended in calls, and holds none.")


def arguments(body: Body) -> Iterator[tuple[Body, str]]:
    """Where the arguments of each call stand: (object, field)."""
    return ((block, "input") for block in body["content"] if block["type"] == "tool_use")


def events(body: Body) -> Iterator[Event]:
    """The stream of a whole message; its usage stands in the one `message_delta`."""
    end = {name: body[name] for name in ENDED if name in body}
    beside = {name: end.pop(name) for name in ENDED[-1:] if name in end}
    begun = {**body, "content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(body["content"]):
        for event in _block(block):
            yield {**event, "index": index}
    yield {"type": "message_delta", "delta": end, "usage": body["usage"], **beside}
    yield {"type": "message_stop"}


def _block(block: Block) -> Iterator[Event]:
    emptied = dict.fromkeys(DELTAS.get(block["type"], ()), "")
    begun: Block = {**block, **emptied, **({"input": {}} if "input" in block else {})}
    begun.pop("citations", None)
    yield {"type": "content_block_start", "content_block": begun}
    for delta in _deltas(block):
        yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}


def _deltas(block: Block) -> Iterator[Event]:
    for name, kind in DELTAS.get(block["type"], {}).items():
        if block.get(name):
            yield {"type": kind, name: block[name]}
    for citation in block.get("citations") or ():
        yield {"type": "citations_delta", "citation": citation}
    if "input" in block:
        given = block["input"]
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        yield {"type": "input_json_delta", "partial_json": text}


def _written(opened: _Opened) -> Block:
    block = dict(opened.block)
    for name, pieces in opened.pieces.items():
        if name == "citation":
            block["citations"] = [*(block.get("citations") or ()), *pieces]
        elif name == "partial_json":
            if text := joined(pieces):
                block["input"] = _input(text)
        elif all(isinstance(piece, str) for piece in pieces):
            block[name] = (block.get(name) or "") + joined(pieces)
        else:
            block[name] = pieces[-1]
    return block


def _input(text: str) -> dict[str, Any] | str:
    try:
        return parse_strictly(text)
    except NotStrictJson:
        return text
