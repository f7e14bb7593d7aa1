"""OpenAI's Responses API: items by output index, each checked against its id.

Source: `openai.types.responses.ResponseStreamEvent` of the official SDK.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from agent.wire import assemble
from agent.wire.assemble import Body, Call, Event, StreamInterrupted, joined, word

Item = dict[str, Any]

# The events `response.NAME.delta` and `.done`: the field that holds the text in `done` and item.
TEXTS = {
    "function_call_arguments": "arguments",
    "custom_tool_call_input": "input",
    "output_text": "text",
    "refusal": "refusal",
}
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
BAD_ENDS = ("response.failed", "response.incomplete", "response.cancelled", "error")


@dataclass
class _Opened:
    """One item: the pieces of each of its texts by content index (None: a call's arguments)."""

    item: Item
    call: Call | None
    texts: dict[int | None, list[str]] = field(default_factory=dict)
    done: Item | None = None


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
            raise self.interrupted(_bad_end(event))

    def _open(self, event: Event) -> _Opened:
        index, item = int(event["output_index"]), event["item"]
        if index in self._items:
            raise self.interrupted("Two items share one output index.")
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
        opened.texts.setdefault(_place(opened, event), []).append(event["delta"] + "")

    def _text_done(self, event: Event, text: str) -> None:
        opened = self._at(event)
        self._same(opened, _place(opened, event), text)
        opened.texts.setdefault(_place(opened, event), [])[:] = [text]

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
            self._same(opened, place, text)
        opened.done = item
        if call:
            call.pieces[:], call.done = [item[CALLS[item["type"]]]], True

    def _complete(self, response: Body) -> None:
        output = response.get("output") or []
        for index, item in enumerate(() if self._items else output):
            self._close({"output_index": index, "item": item})
        items = [opened.done for _, opened in sorted(self._items.items()) if opened.done]
        if len(items) < len(self._items):
            raise self.interrupted("The response ended with an item that was not done.")
        output = output or items  # some servers end with an empty list, whatever they streamed
        if list(map(_essence, output)) != list(map(_essence, items)):
            raise self.interrupted("The last event contradicts those before it.")
        check(body := {**response, "output": output})
        self._body, self.ended = body, True

    def _whole(self) -> Body:
        if self._body is None:
            raise self.interrupted("The stream ended before the response was completed.")
        return self._body

    def _at(self, event: Event) -> _Opened:
        """The item that an event is about."""
        opened = self._items.get(event["output_index"])
        if opened is None:
            raise self.interrupted("An event is about an item that was never opened.")
        told = event.get("item_id") or event.get("item", {}).get("id")
        if told and opened.item.get("id") and told != opened.item["id"]:
            raise self._wrong(opened, "its item id changed")
        return opened

    def _same(self, opened: _Opened, place: int | None, text: str) -> None:
        pieces = opened.texts.get(place)
        if pieces and joined(pieces) != text:
            raise self._wrong(opened, "what was done is not what its pieces say")

    def _wrong(self, opened: _Opened, why: str) -> StreamInterrupted:
        if opened.call:
            return self._broken(opened.call, why)
        return self.interrupted(f"An item contradicts itself: {why}.")


def _place(opened: _Opened, event: Event) -> int | None:
    return None if opened.call else event.get("content_index")


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
    numbers = count()
    for event in _events(body):
        yield {**event, "sequence_number": next(numbers)}


def _events(body: Body) -> Iterator[Event]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(body["output"]):
        tell = _call if item["type"] in CALLS else _message if item["type"] == "message" else _other
        for event in tell(item):
            yield {**event, "output_index": index}
    yield {"type": "response.completed", "response": body}


def _call(item: Item) -> Iterator[Event]:
    name = next(name for name, field in TEXTS.items() if field == CALLS[item["type"]])
    text, about = CALLS[item["type"]], {"item_id": item.get("id") or ""}
    yield {"type": "response.output_item.added", "item": {**item, text: ""}}
    yield {"type": f"response.{name}.delta", **about, "delta": item[text]}
    yield {"type": f"response.{name}.done", **about, "name": item["name"], text: item[text]}
    yield {"type": "response.output_item.done", "item": item}


def _message(item: Item) -> Iterator[Event]:
    yield {"type": "response.output_item.added", "item": {**item, "content": []}}
    for index, part in enumerate(item["content"]):
        for event in _part(part):
            yield {**event, "item_id": item.get("id") or "", "content_index": index}
    yield {"type": "response.output_item.done", "item": item}


def _part(part: Item) -> Iterator[Event]:
    text = {"output_text": "text", "refusal": "refusal"}.get(part["type"])
    empty = {text: "", **({"annotations": []} if text == "text" else {})} if text else {}
    yield {"type": "response.content_part.added", "part": {**part, **empty}}
    if text:
        logprobs = {"logprobs": part.get("logprobs") or []} if text == "text" else {}
        name = f"response.{part['type']}"
        yield {"type": f"{name}.delta", "delta": part[text], **logprobs}
        for index, annotation in enumerate(part.get("annotations") or ()):
            about = {"annotation_index": index, "annotation": annotation}
            yield {"type": "response.output_text.annotation.added", **about}
        yield {"type": f"{name}.done", text: part[text], **logprobs}
    yield {"type": "response.content_part.done", "part": part}


def _other(item: Item) -> Iterator[Event]:
    yield {"type": "response.output_item.added", "item": item}
    yield {"type": "response.output_item.done", "item": item}


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
