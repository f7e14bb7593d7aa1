"""What comes out of a stream: exactly the calls of a completed response, or an interruption."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.strict import parse_strictly
from agent.wire import assemble
from agent.wire.assemble import Assembler, StreamInterrupted
from agent.wire.guard import Guard
from agent.wire.protocols import PROTOCOLS, Protocol
from tests.streams import (
    BUILD,
    PATHS,
    RESPONSE,
    Call,
    Event,
    Stream,
    chat,
    chunk,
    fragment,
    frames,
    messages,
    responses,
)

BY_NAME: dict[str, Protocol] = {protocol.name: protocol for protocol in PROTOCOLS}
A17 = Call("call_1", "get_order", ('{"order_', 'id":"A-17"}'))
B21 = Call("call_2", "get_order", ('{"order_id":"B-21"}',))
NONE = Call("call_3", "list_orders", ())

every_protocol = pytest.mark.parametrize("name", BUILD)


def assembled(name: str, events: Sequence[Event]) -> Any:
    """The body, told as a stream and assembled again: both must be the same."""
    protocol = BY_NAME[name]
    body = _taken(protocol, events)
    assert _taken(protocol, protocol.events(body)) == body
    return body


def _taken(protocol: Protocol, events: Any) -> Any:
    return _filled(protocol, events).whole()


def _filled(protocol: Protocol, events: Any) -> Assembler:
    assembler = protocol.assembler()
    for event in events:
        assembler.take(json.loads(json.dumps(event)))
    return assembler


def cut_off(name: str, events: Sequence[Event]) -> tuple[list[assemble.Call], str]:
    """The calls of a stream that ends too early, and what is said of it."""
    assembler = _filled(BY_NAME[name], events)
    with pytest.raises(StreamInterrupted) as broken:
        assembler.whole()
    return assembler.calls, str(broken.value)


def calls_of(name: str, body: Any) -> list[tuple[str, str, str]]:
    """Id, name and the text of the arguments, in the order of the body."""
    if name == "responses":
        items = [item for item in body["output"] if item["type"] == "function_call"]
        return [(item["call_id"], item["name"], item["arguments"]) for item in items]
    if name == "chat":
        message = body["choices"][0]["message"]
        functions = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
        return [(id_, function["name"], function["arguments"]) for id_, function in functions]
    blocks = [block for block in body["content"] if block["type"] == "tool_use"]
    return [(block["id"], block["name"], _text(block["input"])) for block in blocks]


def _text(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def wanted(name: str, calls: Sequence[Call]) -> list[tuple[str, str, str]]:
    as_sent = [(call.call_id, call.name, call.text) for call in calls]
    if name != "messages":
        return as_sent
    return [(id_, tool, json.dumps(parse_strictly(text))) for id_, tool, text in as_sent]


def text_of(name: str, body: Any) -> str:
    if name == "responses":
        said = [item for item in body["output"] if item["type"] == "message"]
        return "".join(part["text"] for item in said for part in item["content"])
    if name == "chat":
        return body["choices"][0]["message"]["content"] or ""
    return "".join(block["text"] for block in body["content"] if block["type"] == "text")


# Any calls, any interleaving, any splitting, any cut.


def split(text: str, places: Sequence[int]) -> tuple[str, ...]:
    ends = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return tuple(text[a:b] for a, b in pairwise(ends))


values = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["A-17", 'say "hi"', "back\\slash", "line\nbreak", "größer", "🛒🛒", "[DONE]", "\u2028"]
)
arguments = st.dictionaries(values, values | st.integers(-9, 9) | st.booleans(), max_size=3)
dumped = st.builds(json.dumps, arguments, ensure_ascii=st.booleans())


@st.composite
def several(draw: st.DrawFn) -> list[Call]:
    ids = draw(st.lists(st.sampled_from([f"call_{n}" for n in range(9)]), max_size=5, unique=True))
    made = []
    for id_ in ids:
        pieces = split(draw(dumped), draw(st.lists(st.integers(0, 60), max_size=6)))
        made.append(Call(id_, draw(st.sampled_from(["get_order", "get_delivery"])), pieces))
    return made


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes], error: Exception | None = None) -> None:
        self._chunks, self._error = chunks, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for each in self._chunks:
            yield each
        if self._error:
            raise self._error


class Sends(httpx2.AsyncBaseTransport):
    def __init__(self, stream: httpx2.AsyncByteStream, kind: str = "text/event-stream") -> None:
        self._stream, self._kind = stream, kind

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": self._kind}, stream=self._stream)


async def guarded(name: str, stream: httpx2.AsyncByteStream, **options: Any) -> bytes:
    """The body that a client reads behind the guard."""
    kind = options.pop("kind", "text/event-stream")
    async with httpx2.AsyncClient(transport=Guard(Sends(stream, kind), **options)) as client:
        response = await client.post(f"http://model.invalid{PATHS[name]}", content=b"{}")
        return response.content


def check_any(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(BUILD)), label="protocol")
    calls = data.draw(several(), label="calls")
    text = data.draw(values.filter(bool) if not calls else values, label="text")
    stream = BUILD[name](calls, text)
    order = data.draw(st.lists(st.integers(0, len(stream.lanes)), max_size=40), label="order")
    sent = frames(stream.mixed(order), done=stream.done)
    body = b"".join(sent)
    ends = list(accumulate(map(len, sent)))
    complete = ends[stream.ends - stream.done]
    cut = data.draw(st.just(len(body)) | st.integers(0, len(body)), label="cut")
    places = data.draw(st.lists(st.integers(0, max(cut, 1)), max_size=12), label="splits")
    chunks = [body[a:b] for a, b in pairwise(sorted({0, cut, *(p % (cut + 1) for p in places)}))]
    if cut < complete:
        with pytest.raises(StreamInterrupted):
            asyncio.run(guarded(name, Chunks(chunks)))
        return
    told = asyncio.run(guarded(name, Chunks(chunks)))
    events = [json.loads(line[6:]) for line in told.splitlines() if line.startswith(b"data: {")]
    whole = assembled(name, events)
    assert calls_of(name, whole) == wanted(name, calls)
    assert text_of(name, whole) == text


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whole_calls_come_out_or_nothing(data: st.DataObject) -> None:
    check_any(data)


@pytest.mark.long
@settings(max_examples=10_000, deadline=None)
@given(st.data())
def test_whole_calls_come_out_or_nothing_ten_thousand_times(data: st.DataObject) -> None:
    check_any(data)


# Single streams.


@every_protocol
def test_fragments_of_two_orders_that_interleave_give_two_orders(name: str) -> None:
    stream = BUILD[name]([A17, B21])
    opened_at_once = [0, 1]
    first_piece = [0]
    second_whole = [1, 1, 1]
    body = assembled(name, stream.mixed([*opened_at_once, *first_piece, *second_whole]))
    assert calls_of(name, body) == wanted(name, [A17, B21])


@every_protocol
def test_twenty_calls_opened_at_once_each_get_their_own_arguments(name: str) -> None:
    calls = [
        Call(f"call_{n}", "get_order", split(f'{{"order_id":"A-{n}"}}', [5, 9, 14]))
        for n in range(20)
    ]
    turns = [n for _ in range(9) for n in range(20)]
    assert calls_of(name, assembled(name, BUILD[name](calls).mixed(turns))) == wanted(name, calls)


@every_protocol
def test_a_call_without_arguments_stays_one_beside_others(name: str) -> None:
    found = calls_of(name, assembled(name, BUILD[name]([NONE, B21]).events))
    assert [(id_, tool) for id_, tool, _ in found] == [
        ("call_3", "list_orders"),
        ("call_2", "get_order"),
    ]
    assert found[0][2] in ("", "{}")


@every_protocol
def test_text_that_is_no_json_goes_on_as_it_is(name: str) -> None:
    odd = Call("call_1", "get_order", ('{"order_id":', '"A-17"}{"order_id":"B"}'))
    twice = Call("call_2", "get_order", ('{"order_id":"A","order_id":"B"}',))
    found = calls_of(name, assembled(name, BUILD[name]([odd, twice]).events))
    assert [text for *_, text in found] == [odd.text, twice.text]


@every_protocol
def test_a_cut_in_arguments_that_would_name_another_order_interrupts(name: str) -> None:
    cut = Call("call_1", "get_order", ('{"order_id":"A', "-17"))
    events = BUILD[name]([cut]).events
    ends = next(n for n, event in enumerate(events) if "-17" in json.dumps(event)) + 1
    [call], why = cut_off(name, events[:ends])
    assert (call.call_id, call.name, call.done) == ("call_1", "get_order", False)
    assert call.broke == "after 17 characters of its arguments"
    assert "A-17" not in why


@every_protocol
def test_of_two_calls_the_finished_one_does_not_come_out_of_a_cut_stream(name: str) -> None:
    events = BUILD[name]([B21, A17]).events
    calls, _ = cut_off(name, events[:-4])
    assert [call.call_id for call in calls] == ["call_2", "call_1"]


@every_protocol
@pytest.mark.parametrize("reports", [1, 3])
def test_usage_is_counted_once_however_often_it_is_told(name: str, reports: int) -> None:
    stream = BUILD[name]([A17])
    usage = stream.last[0].get("usage") or stream.last[-1].get("usage")
    more = [{**event, "usage": usage} for event in stream.events[:reports] if name == "chat"]
    more += [stream.last[0]] * (reports - 1) if name == "messages" else []
    body = assembled(name, [*stream.first, *stream.lanes[0], *more[1:], *stream.last])
    told = [event for event in BY_NAME[name].events(body) if event.get("usage")]
    counted = told[0]["usage"] if told else body["usage"]
    assert len(told) <= 1
    assert 10 in counted.values()
    assert 2 in counted.values()


@every_protocol
async def test_half_a_character_is_not_replaced(name: str) -> None:
    body = b"".join(frames(BUILD[name]([Call("c", "get_order", ('{"a":"ä"}',))]).events))
    with pytest.raises(StreamInterrupted, match="UTF-8"):
        await guarded(name, Chunks([body.replace("ä".encode(), b"\xc3")]))


Change = Callable[[Stream], list[Any]]


def _ends_as(**end: Any) -> Change:
    """Chat Completions, ended otherwise."""
    return lambda s: [*s.events[:-2], chunk({}, **end)]


def _stops_as(reason: str | None) -> Change:
    """The same for Messages."""
    return lambda s: [*s.events[:-2], {**s.last[0], "delta": {"stop_reason": reason}}, s.last[1]]


def _last_is(kind: str) -> Change:
    """Responses, with another last event."""
    return lambda s: [*s.events[:-1], {**s.last[0], "type": kind}]


CUT = {"type": "response.completed", "response": {**RESPONSE, "status": "incomplete", "output": []}}
FAILED = {"type": "error", "error": {"type": "overloaded_error"}}
ENDS: list[tuple[str, str, Change]] = [
    *(
        ("chat", f"finish_reason {reason!r}", _ends_as(finish_reason=reason))
        for reason in ("length", "content_filter", "function_call", "error", "")
    ),
    ("chat", "an error", lambda s: [*s.events[:-2], {"error": {"code": "x"}}, *s.last]),
    ("chat", "a call after the end", lambda s: [*s.events, *s.lanes[0]]),
    ("chat", "an end in calls without any", lambda s: [*s.first, *s.last]),
    ("chat", "a delta that is no text", lambda s: [_arguments(1), *s.last]),
    ("chat", "two choices", lambda s: [chunk({}, index=1), *s.events]),
    ("chat", "a call of the old kind", lambda s: [chunk({"function_call": {"a": 1}}), *s.events]),
    *(
        ("messages", f"stop_reason {reason!r}", _stops_as(reason))
        for reason in ("max_tokens", "pause_turn", "refusal", "model_context_window_exceeded", None)
    ),
    ("messages", "no message_stop", lambda s: s.events[:-1]),
    ("messages", "a block not stopped", lambda s: [*s.first, *s.lanes[0][:-1], *s.last]),
    ("messages", "a delta behind its block", lambda s: [*s.events[:-2], s.lanes[0][1], *s.last]),
    ("messages", "a second start", lambda s: [*s.first, *s.events]),
    ("messages", "a block opened twice", lambda s: [*s.first, s.lanes[0][0], *s.events[1:]]),
    ("messages", "an error", lambda s: [*s.events[:-2], FAILED]),
    ("messages", "an event without its fields", lambda s: [{"type": "content_block_delta"}]),
    *(
        ("responses", kind, _last_is(kind))
        for kind in ("response.incomplete", "response.failed", "error")
    ),
    ("responses", "completed as incomplete", lambda s: [*s.events[:-1], CUT]),
    ("responses", "an item without done", lambda s: [*s.first, *s.lanes[0][:-1], *s.last]),
    ("responses", "an item done twice", lambda s: [*s.events[:-1], s.lanes[0][-1], *s.last]),
    ("responses", "an item opened twice", lambda s: [*s.first, s.lanes[0][0], *s.events[1:]]),
    ("responses", "a delta behind its item", lambda s: [*s.events[:-1], s.lanes[0][1], *s.last]),
    ("responses", "a delta of no item", lambda s: [s.lanes[0][1], *s.events]),
    ("responses", "an event that is no object", lambda s: [*s.events[:-1], [], *s.last]),
]


def _arguments(value: Any) -> Event:
    return fragment(0, "get_order", value, id="call_1")


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, _, change in ENDS],
    ids=[f"{name}, {what}" for name, what, _ in ENDS],
)
def test_another_end_than_the_natural_one_interrupts(name: str, change: Change) -> None:
    with pytest.raises(StreamInterrupted):
        assembled(name, change(BUILD[name]([A17])))


EVENTS = {"delta": 3, "arguments.done": 4, "item.done": 5, "completed": 6}
CONTRADICTIONS = [
    *((place, ("A-17", "B-21")) for place in ("arguments.done", "item.done", "completed")),
    *((place, ("fc_0", "fc_1")) for place in EVENTS),
    *((place, ("call_1", "call_2")) for place in ("item.done", "completed")),
    *((place, ("get_order", "list_orders")) for place in ("item.done", "completed")),
    ("delta", ("A-17", "A-1")),
]


@pytest.mark.parametrize(("place", "change"), CONTRADICTIONS)
def test_an_event_that_contradicts_the_others_interrupts(
    place: str, change: tuple[str, str]
) -> None:
    texts = [json.dumps(event) for event in responses([A17]).events]
    assert change[0] in texts[EVENTS[place]]
    texts[EVENTS[place]] = texts[EVENTS[place]].replace(*change)
    with pytest.raises(StreamInterrupted):
        assembled("responses", [json.loads(text) for text in texts])


@pytest.mark.parametrize("end", [{"output": []}, {"output": None}])
def test_an_end_that_repeats_nothing_is_filled_from_the_items(end: Event) -> None:
    stream = responses([A17, B21])
    completed = {**stream.last[0], "response": {**stream.last[0]["response"], **end}}
    body = assembled("responses", [*stream.events[:-1], completed])
    assert calls_of("responses", body) == wanted("responses", [A17, B21])


def test_items_that_nobody_knows_pass_unchanged() -> None:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "abc",
        "from_tomorrow": {"x": 1},
    }
    stream = responses([A17])
    last = stream.last[0]["response"]
    events = [
        *stream.first,
        {"type": "response.output_item.added", "output_index": 1, "item": thought},
        {"type": "response.reasoning_from_tomorrow.delta", "output_index": 1, "delta": {}},
        {"type": "response.output_item.done", "output_index": 1, "item": thought},
        *stream.lanes[0],
        {
            "type": "response.completed",
            "response": {**last, "output": [*last["output"], thought], "new": [1]},
        },
    ]
    body = assembled("responses", events)
    assert body["output"][1] == thought
    assert body["new"] == [1]


def test_thinking_signatures_citations_and_unknown_blocks_pass_unchanged() -> None:
    blocks: list[tuple[Event, list[Event]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "so "},
                {"type": "thinking_delta", "thinking": "then"},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        ({"type": "redacted_thinking", "data": "eHg="}, []),
        (
            {"type": "text", "text": ""},
            [
                {"type": "text_delta", "text": "as said"},
                {"type": "citations_delta", "citation": {"cited_text": "said"}},
            ],
        ),
        ({"type": "from_tomorrow", "x": [1]}, []),
    ]
    stream = messages([], "-")
    lanes = [
        [
            {"type": "content_block_start", "index": n, "content_block": block},
            *({"type": "content_block_delta", "index": n, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": n},
        ]
        for n, (block, deltas) in enumerate(blocks)
    ]
    body = assembled("messages", Stream(stream.first, lanes, stream.last).events)
    assert body["content"] == [
        {"type": "thinking", "thinking": "so then", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHg="},
        {"type": "text", "text": "as said", "citations": [{"cited_text": "said"}]},
        {"type": "from_tomorrow", "x": [1]},
    ]


def test_fields_that_other_servers_add_pass_unchanged() -> None:
    stream = chat([], "hello")
    thinking = [chunk({"reasoning_content": piece}) for piece in ("so ", "then")]
    signed = fragment(0, "list_orders", id="c", arguments="{}", extra_content={"sig": "x"})
    ended = {**stream.last[0], "service": "fast"}
    body = assembled("chat", [*stream.first, *thinking, signed, *stream.lanes[0], ended])
    message = body["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("so then", "hello")
    assert message["tool_calls"][0]["extra_content"] == {"sig": "x"}
    assert body["service"] == "fast"


# Chat Completions as other servers speak it: an index that is missing, or shared.


def test_a_name_and_its_arguments_in_two_fragments_of_one_delta_are_one_call() -> None:
    stream = chat([])
    both = chunk(
        {
            "tool_calls": [
                {"index": 0, "id": "c1", "function": {"name": "get_order"}},
                {"index": 0, "function": {"arguments": '{"order_id":"A-17"}'}},
            ]
        }
    )
    end = chunk({}, finish_reason="tool_calls")
    body = assembled("chat", [*stream.first, both, end])
    assert calls_of("chat", body) == [("c1", "get_order", '{"order_id":"A-17"}')]


def _odd(*fragments: Event) -> list[tuple[str, str, str]]:
    events = [*fragments, chunk({}, finish_reason="tool_calls")]
    return calls_of("chat", assembled("chat", events))


ONE, TWO, THREE = ('{"order_id":"A"}', '{"order_id":"B"}', '{"order_id":"A-17"}')


@pytest.mark.parametrize("index", [0, None])
def test_whole_calls_under_one_index_stay_apart(index: int | None) -> None:
    assert _odd(
        *(fragment(index, "get_order", text, id=text[-3]) for text in (ONE, TWO, THREE))
    ) == [(text[-3], "get_order", text) for text in (ONE, TWO, THREE)]


@pytest.mark.parametrize("index", [0, None])
def test_calls_in_fragments_under_one_index_stay_apart_where_each_is_closed(
    index: int | None,
) -> None:
    assert _odd(
        fragment(index, "get_order", id="c1"),
        *(fragment(index, arguments=piece) for piece in split(ONE, [4, 9])),
        fragment(index, "get_order", id="c2"),
        *(fragment(index, arguments=piece) for piece in split(TWO, [4, 9])),
    ) == [("c1", "get_order", ONE), ("c2", "get_order", TWO)]


def test_an_id_in_each_fragment_tells_calls_under_one_index_apart_once_one_is_closed() -> None:
    assert _odd(
        fragment(0, "get_order", ONE, id="c1"),
        fragment(0, "get_order", TWO[:5], id="c2"),
        fragment(0, "get_order", TWO[5:], id="c2"),
    ) == [("c1", "get_order", ONE), ("c2", "get_order", TWO)]


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment(0, "a", id="c1"), fragment(0, "a", id="c2"), fragment(0, arguments=ONE)],
        [fragment(0, "a", ONE[:5], id="c1"), fragment(0, "a", TWO, id="c2")],
        [fragment(0, "a", ONE, id="c1"), fragment(0, "a", id="c2")],
        [fragment(None, "a", id="c1"), fragment(None, "a", id="c2"), fragment(None, arguments=ONE)],
        [fragment(0, "a", id="c1"), fragment(0, "b", ONE)],
    ],
    ids=["both opened", "first not closed", "second empty", "no index", "another name"],
)
def test_calls_that_cannot_be_told_apart_interrupt(fragments: list[Event]) -> None:
    with pytest.raises(StreamInterrupted):
        _odd(*fragments)


# What the guard does with a body as such.


@every_protocol
async def test_a_page_is_not_a_stream(name: str) -> None:
    with pytest.raises(StreamInterrupted, match="no event"):
        await guarded(name, Chunks([b"<!doctype html><p>It works!</p>"]), kind="text/html")


@every_protocol
async def test_a_lost_connection_interrupts(name: str) -> None:
    told: list[str] = []
    lost = Chunks(frames(BUILD[name]([A17, B21]).events)[:-2], httpx2.ReadError("reset"))
    with pytest.raises(StreamInterrupted, match="ReadError"):
        await guarded(name, lost, on_named=lambda call_id, tool: told.append(call_id))
    assert told == ["call_1", "call_2"]


@every_protocol
async def test_a_stalled_stream_interrupts(name: str) -> None:
    class Stalled(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield frames(BUILD[name]([A17]).events)[0]
            await asyncio.Event().wait()

    with pytest.raises(StreamInterrupted, match="stopped coming"):
        await guarded(name, Stalled(), stall=0.05)


@every_protocol
async def test_an_event_that_is_no_json_interrupts(name: str) -> None:
    sent = frames(BUILD[name]([A17]).events)
    with pytest.raises(StreamInterrupted, match="not JSON"):
        await guarded(name, Chunks([*sent[:2], b'data: {"type":\n\n', *sent[2:]]))


@every_protocol
async def test_a_body_that_was_not_streamed_is_held_to_the_same_rules(name: str) -> None:
    body = assembled(name, BUILD[name]([A17]).events)
    sent = json.dumps(body).encode()
    assert await guarded(name, Chunks([sent]), kind="application/json") == sent
    cut = sent
    for end in (b'"completed"', b'"tool_calls"', b'"tool_use", "stop_s'):
        cut = cut.replace(b'"status": ' + end, b'"status": "incomplete"')
        cut = cut.replace(b'"finish_reason": ' + end, b'"finish_reason": "length"')
        cut = cut.replace(b'"stop_reason": ' + end, b'"stop_reason": "max_tokens", "stop_s')
    for broken in (cut, sent[:-9], b"[]", b"null", b"[" * 10_000):
        with pytest.raises(StreamInterrupted):
            await guarded(name, Chunks([broken]), kind="application/json")


@every_protocol
async def test_names_are_told_before_the_response_has_ended(name: str) -> None:
    told: list[tuple[str, str]] = []
    sent = frames(BUILD[name]([A17, B21]).events)
    with pytest.raises(StreamInterrupted):
        await guarded(
            name, Chunks(sent[:-3]), on_named=lambda call_id, tool: told.append((call_id, tool))
        )
    assert told == [("call_1", "get_order"), ("call_2", "get_order")]
