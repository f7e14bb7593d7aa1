"""OpenAI's Chat Completions: calls by index and id, one choice.

Source: `openai.types.chat.ChatCompletionChunk` of the official SDK. Other servers leave the index
out, or give several calls the same one: then each must be closed before the next begins.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.wire import assemble
from agent.wire.assemble import Body, Call, Event, Seen, StreamInterrupted, joined, word

ENDS = ("stop", "tool_calls")
MARKS = re.compile(r'\\.|["{}]', re.DOTALL)


@dataclass
class _Call(Call):
    """A call, the index it came under, and what its fragments held besides."""

    index: int = 0
    more: dict[str, Any] = field(default_factory=lambda: {"type": "function"})


class Assembler(assemble.Assembler):
    """From the first chunk to `[DONE]`, or to the end behind a `finish_reason`."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._head: Body = {}
        self._choice: Body = {}
        self._said: dict[str, list[Any]] = {}
        self._end: str | None = None
        self._by_index: dict[int | None, list[_Call]] = {}

    def _take(self, event: Event) -> None:
        if error := event.get("error"):
            code = error.get("code") or error.get("type") if isinstance(error, dict) else "error"
            raise self.interrupted(f"The response reported an error ({word(code)}).")
        if "choices" not in event and "usage" not in event:
            return
        self._head |= {
            name: value
            for name, value in event.items()
            if name not in ("choices", "usage") and value is not None
        }
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices") or ():
            self._choose(choice)

    def _choose(self, choice: Event) -> None:
        if choice.get("index"):
            raise self.interrupted("The response has more than one choice.")
        delta = choice.get("delta") or {}
        if self._end and (delta.get("content") or delta.get("tool_calls")):
            raise self.interrupted("The response went on after its end.")
        if delta.get("function_call"):
            raise self.interrupted("The response holds a call without an id (`function_call`).")
        for fragment in delta.get("tool_calls") or ():
            self._fragment(fragment)
        kept = {n: v for n, v in delta.items() if n not in ("tool_calls", "function_call")}
        for name, value in {**kept, "logprobs": choice.get("logprobs")}.items():
            if value is not None:
                self._said.setdefault(name, []).append(value)
        inner = ("index", "delta", "logprobs", "finish_reason")
        self._choice |= {n: v for n, v in choice.items() if n not in inner and v is not None}
        if end := choice.get("finish_reason"):
            self._finish(end)

    def _fragment(self, fragment: Event) -> None:
        call = self._call(fragment.get("id") or "", fragment.get("index"))
        function = fragment.get("function") or {}
        name = function.get("name") or ""
        if name and call.name and name != call.name:
            raise self._broken(call, "its name changed")
        call.name = call.name or name
        if piece := function.get("arguments"):
            call.pieces.append(piece + "")
        known = ("id", "index", "function")
        call.more |= {n: v for n, v in fragment.items() if n not in known and v is not None}
        self._named(call)

    def _call(self, id_: str, index: int | None) -> _Call:
        """The call that a fragment belongs to: by its id, else the last one of its index."""
        calls = self._by_index.setdefault(index, [])
        for call in calls:
            if id_ and call.call_id == id_:
                return call
        if calls and (not id_ or not calls[-1].call_id):
            calls[-1].call_id = calls[-1].call_id or id_
            return calls[-1]
        if calls and not _is_closed(calls[-1].text):
            raise self._broken(calls[-1], "another call began under its index")
        call = _Call(id_, index=index or 0)
        calls.append(call)
        self.calls.append(call)
        return call

    def _finish(self, end: str) -> None:
        if end not in ENDS:
            raise self.interrupted(f"The response ended as {word(end)}.")
        for calls in self._by_index.values():
            for call in calls:
                if len(calls) > 1 and not _is_closed(call.text):
                    raise self._broken(call, "it shares its index, and is not closed")
                call.done = True
        self._end = end

    def _whole(self) -> Body:
        if self._end is None:
            raise self.interrupted("The stream ended before the response was completed.")
        said = {name: _joined(pieces) for name, pieces in self._said.items()}
        logprobs = said.pop("logprobs", None)
        message = {"content": None, **said, "role": "assistant"}
        if self.calls:
            several = [call for calls in self._by_index.values() for call in calls]
            in_order = sorted(several, key=lambda call: call.index)
            message["tool_calls"] = list(map(_written, in_order))
        about = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": self._end}
        usage = {"usage": self.usage} if self.usage else {}
        head = {**self._head, "object": "chat.completion"}
        check(body := {**head, "choices": [{**self._choice, **about}], **usage})
        return body


def check(body: Body) -> None:
    """Raises StreamInterrupted unless the completion came to its natural end."""
    if body.get("error"):
        raise StreamInterrupted("The response reported an error.")
    if len(body["choices"]) != 1:
        raise StreamInterrupted("The response does not have one choice.")
    for choice in body["choices"]:
        end, calls = choice.get("finish_reason"), choice["message"].get("tool_calls") or ()
        if choice["message"].get("function_call"):
            raise StreamInterrupted("The response holds a call without an id (`function_call`).")
        if not all(isinstance(call["function"]["arguments"], str) for call in _functions(calls)):
            raise StreamInterrupted("The arguments of a call are not text.")
        if end not in ENDS:
            seen = [Seen(call["id"], call["function"]["name"], False) for call in calls]
            raise StreamInterrupted(f"The response ended as {word(end)}.", seen)
        if end == "tool_calls" and not calls:
            raise StreamInterrupted("The response ended in calls, and holds none.")


def _functions(calls: Iterable[Body]) -> Iterator[Body]:
    return (call for call in calls if "function" in call)


def arguments(body: Body) -> Iterator[tuple[Body, str]]:
    """Where the arguments of each call stand: (object, field)."""
    for choice in body["choices"]:
        for call in _functions(choice["message"].get("tool_calls") or ()):
            yield call["function"], "arguments"


def events(body: Body) -> Iterator[Event]:
    """The chunks of a completion; the usage comes once, behind the choice."""
    head = {name: value for name, value in body.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    choice = body["choices"][0]
    said = {name: value for name, value in choice["message"].items() if name != "tool_calls"}
    calls = choice["message"].get("tool_calls") or ()
    more = {n: v for n, v in choice.items() if n not in ("message", "finish_reason", "logprobs")}
    yield {**head, "choices": [{**_delta(said), "logprobs": choice.get("logprobs")}]}
    if calls:  # in one chunk: for each, OpenAI's client reads all that came before once more
        several = [{"index": index, **call} for index, call in enumerate(calls)]
        yield {**head, "choices": [_delta({"tool_calls": several})]}
    yield {**head, "choices": [{**_delta({}), **more, "finish_reason": choice["finish_reason"]}]}
    if body.get("usage"):
        yield {**head, "choices": [], "usage": body["usage"]}


def _delta(delta: Body) -> Event:
    return {"index": 0, "delta": delta, "finish_reason": None}


def _written(call: _Call) -> Body:
    function = {"name": call.name, "arguments": call.text}
    return {"id": call.call_id, **call.more, "function": function}


def _is_closed(text: str) -> bool:
    """Whether an object was begun and ended, read or not: brackets outside of strings."""
    depth, inside = 0, False
    for mark in MARKS.findall(text):
        if mark == '"':
            inside = not inside
        elif not inside:
            depth += {"{": 1, "}": -1}.get(mark, 0)
    return text.lstrip().startswith("{") and not depth and not inside


def _joined(pieces: list[Any]) -> Any:
    """Texts and lists go on from piece to piece, also within an object; the rest is replaced."""
    if all(isinstance(piece, str) for piece in pieces):
        return joined(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return [each for piece in pieces for each in piece]
    if all(isinstance(piece, dict) for piece in pieces):
        told = [(name, value) for piece in pieces for name, value in piece.items()]
        several = {name: [v for n, v in told if n == name and v is not None] for name, _ in told}
        return {name: _joined(values or [None]) for name, values in several.items()}
    return pieces[-1]
