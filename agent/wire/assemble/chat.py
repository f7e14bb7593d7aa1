"""OpenAI's Chat Completions: calls by index and id, one choice.

Source: `openai.types.chat.ChatCompletionChunk` of the official SDK. Other servers leave the index
out, or give several calls the same one: then each must be closed before the next begins.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.wire import assemble
from agent.wire.assemble import Body, Call, Event, StreamInterrupted, joined, word

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
            raise StreamInterrupted(f"The response reported an error ({word(code)}).")
        if "choices" not in event and "usage" not in event:
            return
        self._head |= _without(event, "choices", "usage")
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices") or ():
            self._choose(choice)

    def _choose(self, choice: Event) -> None:
        if choice.get("index"):
            raise StreamInterrupted("The response has more than one choice.")
        delta = choice.get("delta") or {}
        if self._end and (delta.get("content") or delta.get("tool_calls")):
            raise StreamInterrupted("The response went on after its end.")
        if delta.get("function_call"):
            raise StreamInterrupted("The response holds a call without an id (`function_call`).")
        for fragment in delta.get("tool_calls") or ():
            self._fragment(fragment)
        said = {**delta, "logprobs": choice.get("logprobs")}
        for name, value in _without(said, "tool_calls", "function_call").items():
            self._said.setdefault(name, []).append(value)
        self._choice |= _without(choice, "index", "delta", "logprobs", "finish_reason")
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
        call.more |= _without(fragment, "id", "index", "function")
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
            raise StreamInterrupted(f"The response ended as {word(end)}.")
        for calls in self._by_index.values():
            for call in calls:
                if len(calls) > 1 and not _is_closed(call.text):
                    raise self._broken(call, "it shares its index, and is not closed")
                call.done = True
        self._end = end

    def _whole(self) -> Body:
        if self._end is None:
            raise StreamInterrupted("The stream ended before the response was completed.")
        said = {name: _joined(pieces) for name, pieces in self._said.items()}
        logprobs = said.pop("logprobs", None)
        message = {"content": None, **said, "role": "assistant"}
        if self.calls:
            several = [call for calls in self._by_index.values() for call in calls]
            in_order = sorted(several, key=lambda call: call.index)
            message["tool_calls"] = list(map(_written, in_order))
        about = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": self._end}
        choices = {"object": "chat.completion", "choices": [{**self._choice, **about}]}
        check(body := {**self._head, **choices, **({"usage": self.usage} if self.usage else {})})
        return body


def check(body: Body) -> None:
    """Raises StreamInterrupted unless the completion came to its natural end."""
    if body.get("error"):
        raise StreamInterrupted("The response reported an error.")
    if len(body["choices"]) != 1:
        raise StreamInterrupted("The response does not have one choice.")
    choice = body["choices"][0]
    end, message = choice.get("finish_reason"), choice["message"]
    if message.get("function_call"):
        raise StreamInterrupted("The response holds a call without an id (`function_call`).")
    if not all(isinstance(function[name], str) for function, name in arguments(body)):
        raise StreamInterrupted("The arguments of a call are not text.")
    if end not in ENDS:
        raise StreamInterrupted(f"The response ended as {word(end)}.")
    if end == "tool_calls" and not message.get("tool_calls"):
        raise StreamInterrupted("The response ended in calls, and holds none.")


def arguments(body: Body) -> Iterator[tuple[Body, str]]:
    """Where the arguments of each call stand: (object, field)."""
    for choice in body["choices"]:
        for call in choice["message"].get("tool_calls") or ():
            if "function" in call:
                yield call["function"], "arguments"


def events(body: Body) -> Iterator[Event]:
    """The chunks of a completion; the usage comes once, behind the choice."""
    head = {**_without(body, "choices", "usage"), "object": "chat.completion.chunk"}
    choice = body["choices"][0]
    said, calls = _without(choice["message"], "tool_calls"), choice["message"].get("tool_calls")
    yield {**head, "choices": [{**_delta(said), "logprobs": choice.get("logprobs")}]}
    if calls:  # in one chunk: for each, OpenAI's client reads all that came before once more
        several = [{"index": index, **call} for index, call in enumerate(calls)]
        yield {**head, "choices": [_delta({"tool_calls": several})]}
    yield {**head, "choices": [{**_delta({}), **_without(choice, "message", "logprobs")}]}
    if body.get("usage"):
        yield {**head, "choices": [], "usage": body["usage"]}


def _delta(delta: Body) -> Event:
    return {"index": 0, "delta": delta, "finish_reason": None}


def _without(fields: Body, *names: str) -> Body:
    """The other fields, as far as they hold anything."""
    return {name: v for name, v in fields.items() if name not in names and v is not None}


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
        several: dict[str, list[Any]] = {name: [] for piece in pieces for name in piece}
        for name, value in (told for piece in pieces for told in _without(piece).items()):
            several[name].append(value)
        return {name: _joined(values or [None]) for name, values in several.items()}
    return pieces[-1]
