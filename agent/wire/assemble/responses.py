"""OpenAI's Responses API: items by output index, each checked against its id.

Source: `openai.types.responses.ResponseStreamEvent` of the official SDK.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.wire import assemble
from agent.wire.assemble import Body, Call, Event, StreamInterrupted, joined, word

Item = dict[str, Any]

# What holds the text of a call, and of a part of a message.
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
PARTS = {"output_text": "text", "refusal": "refusal"}
# The events `response.NAME.delta` and `.done`, and what holds the text in `done`.
TEXTS = {**{f"{kind}_{text}": text for kind, text in CALLS.items()}, **PARTS}
BAD_ENDS = ("response.failed", "response.incomplete", "response.cancelled", "error")


@dataclass
class _Opened:
    """One item: the pieces of each of its texts by content index (None: a call's arguments)."""

    item: Item
    call: Call | None
    texts: dict[int | None, list[str]] = field(default_factory=dict)
    done: Item | None = None

    def pieces(self, event: Event) -> list[str]:
        """Those of the text that an event is about."""
        return self.texts.setdefault(None if self.call else event.get("content_index"), [])


class Assembler(assemble.Assembler):
    """From `response.created` to `response.completed`."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._items: dict[int, _Opened] = {}
        self._body: Body | None = None

    def _take(self, event: Event) -> None:
        kind: str = event["type"]
        name, _, stage = kind.removeprefix("response.").rpartition(".")
        if name in TEXTS and stage == "delta":
            self._piece(event)
        elif name in TEXTS and stage == "done":
            self._text_done(event, event[TEXTS[name]])
        elif kind == "response.output_item.added":
            self._open(event)
        elif kind == "response.output_item.done":
            self._close(event)
        elif kind == "response.completed":
            self._complete(event["response"])
        elif kind in BAD_ENDS:
            self.usage = (event.get("response") or {}).get("usage")
            raise StreamInterrupted(_bad_end(event))

    def _open(self, event: Event) -> _Opened:
        index, item = int(event["output_index"]), event["item"]
        if index in self._items:
            raise StreamInterrupted("Two items share one output index.")
        opened = self._items[index] = _Opened(item, None)
        if item["type"] in CALLS:
            begun = item.get(CALLS[item["type"]]) or ""
            call = Call(item["call_id"], item["name"], [begun] if begun else [])
            self.calls.append(call)
            opened.call, opened.texts[None] = call, call.pieces
            self._named(call)
        return opened

    def _piece(self, event: Event) -> None:
        opened = self._at(event)
        if opened.done:
            raise self._wrong(opened, "it goes on after it was done")
        opened.pieces(event).append(event["delta"] + "")

    def _text_done(self, event: Event, text: str) -> None:
        opened = self._at(event)
        self._check_same(opened, opened.pieces(event), text)
        opened.pieces(event)[:] = [text]

    def _close(self, event: Event) -> None:
        item = event["item"]
        opened = self._at(event) if event["output_index"] in self._items else self._open(event)
        if opened.done or item.get("status") not in (None, "completed"):
            raise self._wrong(opened, "it was done twice, or not completed")
        call = opened.call
        if item["type"] != opened.item["type"] or (
            call and (item["call_id"], item["name"]) != (call.call_id, call.name)
        ):
            raise self._wrong(opened, "it was done under another name or id")
        for place, text in _texts(item):
            self._check_same(opened, opened.texts.get(place, ()), text)
        opened.done = item
        if call:
            call.pieces[:], call.done = [item[CALLS[item["type"]]]], True

    def _complete(self, response: Body) -> None:
        self.usage, output = response.get("usage"), response.get("output") or []
        for index, item in enumerate(() if self._items else output):
            self._close({"output_index": index, "item": item})
        items = [opened.done for _, opened in sorted(self._items.items()) if opened.done]
        if len(items) < len(self._items):
            raise StreamInterrupted("The response ended with an item that was not done.")
        output = output or items  # some servers end with an empty list, whatever they streamed
        if list(map(_essence, output)) != list(map(_essence, items)):
            raise StreamInterrupted("The last event contradicts those before it.")
        check(body := {**response, "output": output})
        self._body, self.ended = body, True

    def _whole(self) -> Body:
        if self._body is None:
            raise StreamInterrupted("The stream ended before the response was completed.")
        return self._body

    def _at(self, event: Event) -> _Opened:
        """The item that an event is about."""
        opened = self._items.get(event["output_index"])
        if opened is None:
            raise StreamInterrupted("An event is about an item that was never opened.")
        told = event.get("item_id") or event.get("item", {}).get("id")
        if told and opened.item.get("id") and told != opened.item["id"]:
            raise self._wrong(opened, "its item id changed")
        return opened

    def _check_same(self, opened: _Opened, pieces: Sequence[str], text: str) -> None:
        if pieces and joined(pieces) != text:
            raise self._wrong(opened, "what was done is not what its pieces say")

    def _wrong(self, opened: _Opened, why: str) -> StreamInterrupted:
        if opened.call:
            return self._broken(opened.call, why)
        return StreamInterrupted(f"An item contradicts itself: {why}.")


def check(body: Body) -> None:
    """Raises StreamInterrupted unless the response is completed, and each of its calls."""
    status = body.get("status", "completed")
    if status != "completed" or body.get("error"):
        raise StreamInterrupted(f"The response ended as {word(status)}.")
    for item in body["output"]:
        if item["type"] in (*CALLS, "message") and item.get("status") not in (None, "completed"):
            raise StreamInterrupted("An item of the response was not completed.")
        if item["type"] in CALLS and not isinstance(item[CALLS[item["type"]]], str):
            raise StreamInterrupted("The arguments of a call are not text.")


def arguments(body: Body) -> Iterator[tuple[Body, str]]:
    """Where the arguments of each call stand: (object, field)."""
    return ((item, "arguments") for item in body["output"] if item["type"] == "function_call")


def events(body: Body) -> Iterator[Event]:
    """The stream of a completed response."""
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    items = enumerate(body["output"])
    told = [
        {"type": "response.created", "response": begun},
        *({**event, "output_index": n} for n, item in items for event in _item(item)),
        {"type": "response.completed", "response": body},
    ]
    return ({**event, "sequence_number": number} for number, event in enumerate(told))


def _item(item: Item) -> Iterator[Event]:
    """An item, begun empty and filled; one of another kind is whole from the first."""
    kind, empty = item["type"], Item()
    filled: Iterable[Event] = ()
    if kind in CALLS:
        empty, filled = {CALLS[kind]: ""}, _call(item, CALLS[kind])
    elif kind == "message":
        empty, filled = {"content": []}, _message(item)
    yield {"type": "response.output_item.added", "item": {**item, **empty}}
    yield from ({**event, "item_id": item.get("id") or ""} for event in filled)
    yield {"type": "response.output_item.done", "item": item}


def _call(item: Item, text: str) -> Iterator[Event]:
    name = f"response.{item['type']}_{text}"
    yield {"type": f"{name}.delta", "delta": item[text]}
    yield {"type": f"{name}.done", "name": item["name"], text: item[text]}


def _message(item: Item) -> Iterator[Event]:
    for index, part in enumerate(item["content"]):
        yield from ({**event, "content_index": index} for event in _part(part))


def _part(part: Item) -> Iterator[Event]:
    text, name = PARTS.get(part["type"]), f"response.{part['type']}"
    more = {"logprobs": part.get("logprobs") or []} if text == "text" else {}
    empty = {text: "", **({"annotations": []} if text == "text" else {})} if text else {}
    yield {"type": "response.content_part.added", "part": {**part, **empty}}
    if text:
        yield {"type": f"{name}.delta", "delta": part[text], **more}
        for index, annotation in enumerate(part.get("annotations") or ()):
            about = {"annotation_index": index, "annotation": annotation}
            yield {"type": "response.output_text.annotation.added", **about}
        yield {"type": f"{name}.done", text: part[text], **more}
    yield {"type": "response.content_part.done", "part": part}


def _texts(item: Item) -> Iterator[tuple[int | None, str]]:
    """The texts of an item that its pieces must equal, by content index."""
    if item["type"] in CALLS:
        yield None, item[CALLS[item["type"]]] + ""
    if item["type"] == "message":
        for place, part in enumerate(item["content"]):
            text = part.get("text", part.get("refusal"))
            if text is not None:
                yield place, text


def _essence(item: Item) -> tuple[Any, ...]:
    """What two tellings of one item must agree on."""
    ids = (item.get("id"), item["call_id"], item["name"]) if item["type"] in CALLS else ()
    return (item["type"], *ids, *_texts(item))


def _bad_end(event: Event) -> str:
    kind, response = event["type"], event.get("response") or {}
    reason = (response.get("incomplete_details") or {}).get("reason")
    error = response.get("error") or event.get("error") or event
    code = reason or error.get("code")
    ended = "reported an error" if kind == "error" else f"ended as {kind.rpartition('.')[2]}"
    return f"The response {ended}" + (f" ({word(code)})." if code else ".")
