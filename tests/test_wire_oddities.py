"""Streams and bodies that no vendor should send, and that some server once will."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from agent.strict import NotStrictJson, parse_strictly
from agent.wire.assemble import StreamInterrupted, joined
from agent.wire.assemble.chat import _is_closed
from tests.commands import here
from tests.scripted import Scripted, answering, calling
from tests.streams import BUILD, Call, chat, chunk, frames, messages
from tests.test_assemblers import BY_NAME, Chunks, calls_of, guarded
from tests.turns import ask, graph_of, results_of
from tools.database import Database

A17 = Call("call_1", "get_order", ('{"order_id":"A-17"}',))
B21 = Call("call_2", "get_order", ('{"order_id":"B-21"}',))
every_protocol = pytest.mark.parametrize("name", BUILD)


def body(name: str) -> bytes:
    return b"".join(frames(BUILD[name]((A17, B21)).events, done=name == "chat"))


def taken(name: str, events: list[Any]) -> Any:
    assembler = BY_NAME[name].assembler(lambda *_: None)
    for event in events:
        assembler.take(event)
    return assembler.whole()


@every_protocol
async def test_a_byte_order_mark_hides_no_event(name: str) -> None:
    marked, plain = Chunks([b"\xef\xbb", b"\xbf" + body(name)]), Chunks([body(name)])
    assert await guarded(name, marked) == await guarded(name, plain)


@every_protocol
async def test_a_name_that_stands_twice_in_an_event_interrupts(name: str) -> None:
    twice = body(name).replace(b"data: {", b'data: {"x": 1, "x": 2, ')
    assert twice != body(name)
    with pytest.raises(StreamInterrupted):
        await guarded(name, Chunks([twice]))


def test_a_character_that_was_split_in_half_is_whole_again() -> None:
    halves = ('{"order_id":"A-17","note":"\ud83d', '\ude00"}')
    assert joined(halves) == '{"order_id":"A-17","note":"😀"}'
    assert joined(["\ud83d", "x"]) == "\ud83dx"
    told = taken("chat", BUILD["chat"]((Call("call_1", "get_order", halves),)).events)
    assert calls_of("chat", told)[0][2] == joined(halves)


def test_brackets_are_counted_in_linear_time() -> None:
    assert not _is_closed('{"x":"' + '\\"' * 300_000)
    assert _is_closed('{"x":"}\\"{"}')


def test_the_odds_of_thousands_of_pieces_are_joined_in_linear_time() -> None:
    odds = [{"token": "x", "logprob": -0.1}]
    piece = chunk({"content": "x"}, logprobs={"content": odds, "refusal": None})
    told = taken("chat", [piece] * 30_000 + chat([]).last)
    assert told["choices"][0]["logprobs"] == {"content": odds * 30_000, "refusal": None}


@pytest.mark.parametrize(
    "text", ['{"x":1e99999999999999999999999}', '{"x":0e99999999999999999999}']
)
def test_a_number_beyond_all_bounds_is_no_strict_json(text: str) -> None:
    with pytest.raises(NotStrictJson):
        parse_strictly(text)


def _after_the_end(events: list[Any]) -> list[Any]:
    late = [{**e, "index": 2} for e in events if e["type"].startswith("content_block")][:3]
    return [*events[:-1], *late, events[-1]]


def _before_the_begin(events: list[Any]) -> list[Any]:
    return [events[1], events[0], *events[2:]]


def _begun_with_a_call(events: list[Any]) -> list[Any]:
    call = {"type": "tool_use", "id": "call_9", "name": "get_order", "input": {}}
    begun = {**events[0], "message": {**events[0]["message"], "content": [call]}}
    return [begun, *events[1:]]


def _ended_twice(events: list[Any]) -> list[Any]:
    cut = {**events[-2], "delta": {"stop_reason": "max_tokens"}}
    return [*events[:-2], cut, *events[-2:]]


@pytest.mark.parametrize(
    "change", [_after_the_end, _before_the_begin, _begun_with_a_call, _ended_twice]
)
def test_a_message_that_contradicts_itself_interrupts(change: Any) -> None:
    events = messages((A17, B21)).events
    with pytest.raises(StreamInterrupted):
        taken("messages", change(events))


CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
LEGACY = {"name": "get_order", "arguments": "{}"}
OBJECT = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": {}}}


@pytest.mark.parametrize(
    "choices",
    [
        [],
        [CHOICE, {**CHOICE, "index": 1}],
        [{**CHOICE, "message": {"content": None, "function_call": LEGACY}}],
        [{**CHOICE, "finish_reason": "tool_calls", "message": {"tool_calls": [OBJECT]}}],
    ],
    ids=["no choice", "two choices", "a call without id", "arguments that are no text"],
)
def test_a_completion_that_a_client_would_read_in_part_interrupts(choices: list[Any]) -> None:
    with pytest.raises(StreamInterrupted):
        BY_NAME["chat"].check({"choices": choices})


@pytest.mark.parametrize("name", ["functions.get_order", "", "get order", "x" * 70])
async def test_a_tool_name_that_vendors_refuse_does_not_stay_in_the_history(
    name: str, database: Database
) -> None:
    model = Scripted(
        calling(("c1", name, {"order_id": "A-17"}), ("c2", "get_order", {"order_id": "B-21"})),
        answering(),
    )
    state = await ask(graph_of(model, database=database), "A-17 and B-21?")
    assert results_of(state) == {"1/c1": ("", "unknown_tool"), "1/c2": ("B-21", "ok")}
    asked = [c["name"] for m in model.last if isinstance(m, AIMessage) for c in m.tool_calls]
    told = [m.name for m in model.last if isinstance(m, ToolMessage)]
    assert asked == told == ["unknown_tool", "get_order"]
    assert state["calls"][0]["name"] == name


def test_what_is_no_regular_file_is_no_stream() -> None:
    done = here("stream", "check", "/dev/zero")
    assert (done.code, "no regular file" in done.err) == (2, True)


@pytest.mark.parametrize(("told", "counted"), [(1.5, 1), (-3, 0), (1e400, 0), (10**30, 0), (7, 7)])
@every_protocol
async def test_a_count_of_tokens_costs_no_turn(name: str, told: Any, counted: int) -> None:
    field = "completion_tokens" if name == "chat" else "output_tokens"
    usage = {field: told} if name != "messages" else {"input_tokens": told}
    stream = BUILD[name]((A17,), **usage)
    heard = await guarded(name, Chunks(frames(stream.events, done=stream.done)))
    field = "input_tokens" if name == "messages" else field
    assert f'"{field}":{counted},' in heard.decode() or f'"{field}":{counted}}}' in heard.decode()
