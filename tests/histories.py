"""Conversations as events, written by hand in each of the three protocols; all data is invented."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from tests import vendors

Raw = dict[str, Any]
TOOL = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Call:
    id: str
    arguments: str = "{}"
    name: str = "get_order"


@dataclass(frozen=True)
class User:
    text: str = "Where are they?"


@dataclass(frozen=True)
class Asks:
    """A response with calls, and words beside them."""

    calls: tuple[Call, ...]
    text: str = ""


@dataclass(frozen=True)
class Result:
    id: str
    output: Any = None


@dataclass(frozen=True)
class Says:
    text: str = "They are on their way."


@dataclass(frozen=True)
class Split:
    """Between two results of Messages: the second begins another message."""


Event = User | Asks | Result | Says | Split
Events = Sequence[Event]


def chat(events: Events) -> list[Raw]:
    def written(event: Event) -> Raw:
        match event:
            case User(text):
                return {"role": "user", "content": text}
            case Says(text):
                return {"role": "assistant", "content": text}
            case Result(id_, output):
                return {"role": "tool", "tool_call_id": id_, "content": compact(output)}
            case Asks(calls, text):
                asked = [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": call.arguments},
                    }
                    for call in calls
                ]
                return {"role": "assistant", "content": text or None, "tool_calls": asked}
        raise AssertionError(event)

    return [written(event) for event in events if not isinstance(event, Split)]


def responses(events: Events) -> list[Raw]:
    def written(event: Event) -> list[Raw]:
        match event:
            case User(text):
                return [{"type": "message", "role": "user", "content": text}]
            case Says(text):
                return [_said(text)]
            case Result(id_, output):
                told = compact(output)
                return [{"type": "function_call_output", "call_id": id_, "output": told}]
            case Asks(calls, text):
                return [*([_said(text)] if text else []), *map(_item, calls)]
        return []

    return [item for event in events for item in written(event)]


def _said(text: str) -> Raw:
    return {"type": "message", "role": "assistant", "content": text}


def _item(call: Call) -> Raw:
    about = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id}
    return {**about, "name": call.name, "arguments": call.arguments, "status": "completed"}


def messages(events: Events) -> list[Raw]:
    told: list[Raw] = []
    for is_result, group in groupby(events, lambda event: isinstance(event, Result)):
        if is_result:
            told.append({"role": "user", "content": [_block(event) for event in group]})
        else:
            told += [_message(event) for event in group if not isinstance(event, Split)]
    return told


def _block(event: Event) -> Raw:
    assert isinstance(event, Result)
    return {"type": "tool_result", "tool_use_id": event.id, "content": compact(event.output)}


def _message(event: Event) -> Raw:
    match event:
        case User(text):
            return {"role": "user", "content": text}
        case Says(text):
            return {"role": "assistant", "content": text}
        case Asks(calls, text):
            said = [{"type": "text", "text": text}] if text else []
            used = [
                {"type": "tool_use", "id": c.id, "name": c.name, "input": _input(c.arguments)}
                for c in calls
            ]
            return {"role": "assistant", "content": [*said, *used]}
    raise AssertionError(event)


def _input(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


WRITE: dict[str, Callable[[Events], list[Raw]]] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
}


def request(name: str, listed: list[Raw]) -> Raw:
    """A whole request, as the vendor's strict double in `tests/vendors.py` takes it."""
    about: Raw = {"model": "m", "tools": [{}]}
    if name == "chat":
        return {**about, "messages": [{"role": "system", "content": "Be kind."}, *listed]}
    if name == "responses":
        return {**about, "instructions": "Be kind.", "input": listed}
    return {**about, "system": "Be kind.", "max_tokens": 100, "messages": listed}


def accepted(name: str, body: Raw) -> vendors.Asked:
    """What the vendor reads in it. Raises vendors.Refused."""
    return vendors.read(vendors.PATHS[name], {"x-api-key": vendors.KEY}, body)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


TEXTS = st.text(st.sampled_from('ab 7"\\é中🙂\n'), min_size=1, max_size=6).filter(str.strip)
VALUES = st.dictionaries(TEXTS, st.one_of(st.integers(-(2**53), 2**53), TEXTS), max_size=2)


@st.composite
def conversations(draw: st.DrawFn, *, unique: bool = True) -> list[Event]:
    """Turns of some rounds each, the last of which may wait for the model.

    unique: whether an id comes once in all of it; else once in a response, as OpenAI allows.
    """
    events: list[Event] = []
    begins = draw(st.sampled_from(["call_", "toolu_", "-", "0" * 60]))
    pool = [f"{begins}{n}" for n in draw(st.permutations(range(18)))]
    for _ in range(draw(st.integers(1, 3))):
        events.append(User(draw(TEXTS)))
        for _ in range(draw(st.integers(0, 2))):
            number = draw(st.integers(1, 3))
            events += draw(rounds([pool.pop() for _ in range(number)] if unique else pool[:number]))
        events.append(Says(draw(TEXTS)))
    events.append(User(draw(TEXTS)))
    return events


@st.composite
def rounds(draw: st.DrawFn, ids: Sequence[str]) -> list[Event]:
    calls = tuple(Call(id_, compact(draw(VALUES))) for id_ in ids)
    results = [Result(id_, draw(VALUES)) for id_ in draw(st.permutations(ids))]
    return [Asks(calls, draw(st.one_of(st.just(""), TEXTS))), *results]


def outputs(events: Events) -> dict[str, Any]:
    """The real results, by call id."""
    return {event.id: event.output for event in events if isinstance(event, Result)}
