"""What may run at all (promise P2): whole responses, told-apart calls, strict JSON."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from agent.history.langchain import check
from agent.strict import NotStrictJson, parse_strictly
from tests.scripted import Scripted, answering, calling, chat, responses
from tests.strategies import SHORT
from tests.turns import ask, cards_of, counting, graph_of, results_of, told
from tools.database import Database
from tools.registry import TOOLS

pytestmark = pytest.mark.on_both("long")

Respond = Callable[..., AIMessage]
BOTH_WIRES = pytest.mark.parametrize("respond", [responses, chat])

NOT_STRICT = {
    "cut in a value": '{"order_id":"A-1',
    "cut before a value": '{"order_id":',
    "cut behind a value": '{"order_id":"A-17"',
    "a key twice": '{"order_id":"A","order_id":"B"}',
    "a key twice, deep": '{"order_id":"A","x":{"y":1,"y":2}}',
    "a second object": '{"order_id":"A"}{"order_id":"B"}',
    "a second object on a new line": '{"order_id":"A"}\n{"order_id":"B"}',
    "text behind": '{"order_id":"A"} please',
    "text before": 'get {"order_id":"A"}',
    "a code fence": '```json\n{"order_id":"A"}\n```',
    "a comment": '{"order_id":"A"} // A',
    "a trailing comma": '{"order_id":"A",}',
    "single quotes": "{'order_id':'A'}",
    "a bare key": '{order_id:"A"}',
    "a raw newline in a string": '{"order_id":"A\nB"}',
    "a raw tab in a string": '{"order_id":"A\tB"}',
    "a bad escape": '{"order_id":"A\\x17"}',
    "NaN": '{"order_id":NaN}',
    "Infinity": '{"order_id":-Infinity}',
    "a number without end": '{"order_id":1e400}',
    "a number that loses digits": '{"order_id":1234567890.12345678901}',
    "a number that becomes nothing": '{"order_id":1e-400}',
    "a whole number beyond 64 bits": '{"order_id":18446744073709551616}',
    "a negative number beyond 64 bits": '{"order_id":-9223372036854775809}',
    "five thousand digits": '{"order_id":' + "9" * 5000 + "}",
    "a leading zero": '{"order_id":00123}',
    "half of a character": '{"order_id":"A\\ud800"}',
    "the other half": '{"order_id":"\\udc00A"}',
    "half of a character as a key": '{"\\ud800":"A"}',
    "a list": '["A"]',
    "a list of one object": '[{"order_id":"A"}]',
    "null": "null",
    "true": "true",
    "a number": "17",
    "a string": '"A"',
    "an object in a string": '"{\\"order_id\\":\\"A\\"}"',
    "a byte order mark": '\ufeff{"order_id":"A"}',
    "five hundred levels": '{"order_id":' + "[" * 500 + "]" * 500 + "}",
    "a hundred thousand levels": '{"order_id":' + "[" * 100_000 + "]" * 100_000 + "}",
    "a hundred thousand levels, cut": '{"order_id":' + "[" * 100_000,
}

UNFIT = {
    "nothing": "",
    "spaces": "  ",
    "an empty object": "{}",
    "a number": '{"order_id":17}',
    "a leading zero lost": '{"order_id":123}',
    "null": '{"order_id":null}',
    "a list of one id": '{"order_id":["A"]}',
    "one argument too many": '{"order_id":"A","customer_id":"C-1002"}',
    "another case of the name": '{"Order_id":"A"}',
    "an id of nothing": '{"order_id":" \\u200b "}',
    "an endless id": '{"order_id":"' + "A" * 5000 + '"}',
    "a control character": '{"order_id":"A\\u0000"}',
}


@pytest.mark.parametrize("text", NOT_STRICT.values(), ids=NOT_STRICT)
def test_arguments_that_two_readers_could_read_differently_are_refused(text: str) -> None:
    with pytest.raises(NotStrictJson):
        parse_strictly(text)


@pytest.mark.parametrize("text", UNFIT.values(), ids=UNFIT)
def test_arguments_that_only_the_schema_refuses_are_strict_json(text: str) -> None:
    assert isinstance(parse_strictly(text), dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"order_id" : "A-17"} ', {"order_id": "A-17"}),
        ('{"n":-0.5,"m":1e3,"i":9007199254740993}', {"n": -0.5, "m": 1000.0, "i": 2**53 + 1}),
        ('{"i":18446744073709551615}', {"i": 2**64 - 1}),
        ('{"s":"\\ud83d\\ude00 \\u20ac"}', {"s": "😀 €"}),
        ('{"a":{"x":1},"b":{"x":1}}', {"a": {"x": 1}, "b": {"x": 1}}),
        ("", {}),
    ],
)
def test_whole_arguments_keep_their_values(text: str, value: dict[str, Any]) -> None:
    assert parse_strictly(text) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@SHORT
@given(value=st.dictionaries(st.text(), JSON, max_size=5))
def test_every_json_object_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    assert parse_strictly(json.dumps(value)) == value
    assert parse_strictly(json.dumps(value, ensure_ascii=False)) == value


@SHORT
@given(value=st.dictionaries(st.text(min_size=1), JSON, min_size=1, max_size=4), data=st.data())
def test_no_cut_of_a_json_object_is_read(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(NotStrictJson):
        parse_strictly(text[:cut])


@BOTH_WIRES
async def test_arguments_that_cannot_be_trusted_are_an_error_of_their_own_call(
    respond: Respond, database: Database
) -> None:
    wrong = []
    for name, raw in {**NOT_STRICT, **UNFIT}.items():
        runs: list[str] = []
        model = Scripted(
            respond(("c1", "get_order", raw), ("c2", "get_order", '{"order_id":"B"}')),
            answering(("c2", "{order_id} {status}")),
        )
        graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
        state = await ask(graph, "A and B?", name)
        check(model.last)
        kinds = {key: kind for key, (_, kind) in results_of(state).items()}
        texts = {call_id: card["text"] for call_id, card in cards_of(state).items()}
        is_right = (
            runs == ["c2"]
            and kinds == {"1/c1": "invalid_arguments", "1/c2": "ok"}
            and [call_id for call_id, _ in told(model.last)] == ["c1", "c2"]
            and texts["c2"] == "B shipped"
            and "could not check" in texts.get("c1", "")
        )
        wrong += [] if is_right else [(name, runs, kinds, texts)]
    assert wrong == []


@BOTH_WIRES
async def test_arguments_that_were_cut_go_back_as_an_empty_object(
    respond: Respond, database: Database
) -> None:
    model = Scripted(respond(("c1", "get_order", '{"order_id":"A-1')), answering())
    await ask(graph_of(model, database=database), "And A-17?")
    asked = next(m for m in model.last if isinstance(m, AIMessage))
    assert asked.tool_calls[0]["args"] == {}
    assert not asked.additional_kwargs
    written = [block["arguments"] for block in asked.content if isinstance(block, dict)]
    assert written in ([], ["{}"])
    ((_, output),) = told(model.last)
    assert '{"order_id":"A-1' in output["error"]["message"]


@BOTH_WIRES
@pytest.mark.parametrize("raw", ["", "  ", "{}"])
async def test_no_arguments_are_enough_for_a_tool_that_needs_none(
    raw: str, respond: Respond, database: Database
) -> None:
    model = Scripted(respond(("c1", "list_orders", raw)), answering(("c1", "{orders}")))
    state = await ask(graph_of(model, database=database), "What have I ordered?")
    assert results_of(state) == {"1/c1": ("", "ok")}


@BOTH_WIRES
@pytest.mark.parametrize("raw", ["null", "[]", '""', "0", '{"x":1}'])
async def test_a_tool_without_arguments_takes_nothing_else_for_an_empty_object(
    raw: str, respond: Respond, database: Database
) -> None:
    model = Scripted(respond(("c1", "list_orders", raw)), answering())
    state = await ask(graph_of(model, database=database), "What have I ordered?")
    assert results_of(state) == {"1/c1": ("", "invalid_arguments")}


async def test_only_calls_that_cannot_be_read_still_get_an_answer(database: Database) -> None:
    bad = responses(("c1", "get_order", "{"), ("c2", "get_order", "]"))
    model = Scripted(bad, bad, answering())
    state = await ask(graph_of(model, database=database), "A and B?")
    assert len(model.requests) == 3
    assert state["answer"]["status"] == "answered"
    assert "could not check" in state["answer"]["message"]


async def test_a_sibling_does_not_make_arguments_good_that_named_two_orders(
    database: Database,
) -> None:
    model = Scripted(
        responses(
            ("c1", "get_order", '{"order_id":"A"}{"order_id":"B"}'),
            ("c2", "get_order", '{"order_id":"B"}'),
        ),
        answering(),
    )
    state = await ask(graph_of(model, database=database), "A and B?")
    assert set(cards_of(state)) == {"c1", "c2"}


async def test_two_orders_in_one_call_are_made_good_by_both_of_them(database: Database) -> None:
    one, other = ("c2", "get_order", {"order_id": "A"}), ("c3", "get_order", {"order_id": "B"})
    for corrected, cards in (((one, other), {"c2", "c3"}), ((other,), {"c1", "c3"})):
        model = Scripted(
            responses(("c1", "get_order", '{"order_id":"A"}{"order_id":"B"}')),
            calling(*corrected),
            answering(),
        )
        state = await ask(graph_of(model, database=database), "A and B?")
        assert set(cards_of(state)) == cards


async def test_calls_stay_in_the_order_of_the_response_whichever_can_be_read(
    database: Database,
) -> None:
    model = Scripted(
        responses(("c1", "get_order", "]"), ("c2", "get_order", "{}"), ("c3", "get_order", "[")),
        answering(),
    )
    await ask(graph_of(model, database=database), "A and B?")
    assert [id_ for id_, _ in told(model.last)] == ["c1", "c2", "c3"]


GOOD = ("c1", "get_order", '{"order_id":"A"}')
CUT: dict[str, AIMessage] = {
    "incomplete": responses(GOOD, status="incomplete"),
    "failed": responses(GOOD, status="failed"),
    "in progress": responses(GOOD, status="in_progress"),
    "no status": responses(GOOD, status=None),
    "length": chat(GOOD, finish="length"),
    "content filter": chat(GOOD, finish="content_filter"),
    "no finish reason": chat(GOOD, finish=None),
    "anthropic, at its limit": calling(
        ("c1", "get_order", {"order_id": "A"}), model_provider="anthropic", stop_reason="max_tokens"
    ),
    "anthropic, without an end": calling(
        ("c1", "get_order", {"order_id": "A"}), model_provider="anthropic"
    ),
    "google, at its limit": calling(
        ("c1", "get_order", {"order_id": "A"}), finish_reason="MAX_TOKENS"
    ),
    "ollama, at its limit": calling(("c1", "get_order", {"order_id": "A"}), done_reason="length"),
    "bedrock, at its limit": calling(
        ("c1", "get_order", {"order_id": "A"}), stopReason="max_tokens"
    ),
}


@pytest.mark.parametrize("cut", CUT.values(), ids=CUT)
async def test_nothing_runs_of_a_response_that_did_not_end(
    cut: AIMessage, database: Database
) -> None:
    runs: list[str] = []
    model = Scripted(cut, cut, cut)
    graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
    state = await ask(graph, "And A?")
    assert runs == []
    assert model.requests[0] == model.requests[1] == model.requests[2]
    assert state["answer"]["status"] == "failed"
    assert state["answer"]["error"]["kind"] == "stream_interrupted"
    assert "Nothing was changed" in state["answer"]["message"]
    assert [message.type for message in state["messages"]] == ["human", "ai"]


@pytest.mark.parametrize("cut", CUT.values(), ids=CUT)
async def test_a_response_that_did_not_end_is_asked_again(
    cut: AIMessage, database: Database
) -> None:
    runs: list[str] = []
    model = Scripted(cut, calling(("c1", "get_order", {"order_id": "B"})), answering())
    graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
    state = await ask(graph, "And B?")
    assert runs == ["c1"]
    assert results_of(state) == {"1/c1": ("B", "ok")}
    assert state["answer"]["status"] == "answered"


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("finish_reason", "stop"),
        ("finish_reason", "tool_calls"),
        ("finish_reason", "STOP"),
        ("stop_reason", "tool_use"),
        ("stop_reason", "end_turn"),
        ("status", "completed"),
        ("done_reason", "stop"),
        ("stopReason", "tool_use"),
    ],
)
async def test_the_ends_of_other_vendors_are_understood(
    name: str, end: str, database: Database
) -> None:
    ended: dict[str, Any] = {name: end}
    model = Scripted(calling(("c1", "get_order", {"order_id": "A"}), **ended), answering())
    state = await ask(graph_of(model, database=database), "And A?")
    assert results_of(state) == {"1/c1": ("A", "ok")}


async def test_a_last_message_that_was_cut_is_asked_again(database: Database) -> None:
    cut = answering(opening="Your order will ")
    cut.response_metadata = {"status": "incomplete", "model_provider": "openai"}
    model = Scripted(cut, answering(opening="Hello."))
    state = await ask(graph_of(model, database=database), "Hello?")
    assert state["answer"]["message"] == "Hello."


TWICE = {
    "the same id": calling(
        ("c1", "get_order", {"order_id": "A"}), ("c1", "get_order", {"order_id": "B"})
    ),
    "the same id and call": calling(
        ("c1", "get_order", {"order_id": "A"}), ("c1", "get_order", {"order_id": "A"})
    ),
    "the same id, other calls between": calling(
        ("c1", "get_order", {"order_id": "A"}),
        ("c2", "get_order", {"order_id": "B"}),
        ("c1", "list_orders", {}),
    ),
    "an empty id": calling(
        ("c1", "get_order", {"order_id": "A"}), ("", "get_order", {"order_id": "B"})
    ),
    "the same id, one without JSON": responses(GOOD, ("c1", "get_order", "{")),
    "the same id on the other wire": chat(GOOD, ("c1", "get_order", '{"order_id":"B"}')),
}


@pytest.mark.parametrize("twice", TWICE.values(), ids=TWICE)
async def test_nothing_runs_of_calls_that_cannot_be_told_apart(
    twice: AIMessage, database: Database
) -> None:
    runs: list[str] = []
    model = Scripted(twice, twice, twice, answering(opening="Hello again."))
    graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
    state = await ask(graph, "A and B?")
    assert runs == []
    assert model.requests[0] == model.requests[1] == model.requests[2]
    assert state["answer"]["error"]["kind"] == "ambiguous_calls"
    assert state["answer"]["status"] == "failed"
    assert state["answer"]["cards"] == []
    assert "Nothing was changed" in state["answer"]["message"]
    later = await ask(graph, "Hello?")
    assert later["answer"]["message"] == "Hello again."
    check(model.last)


@pytest.mark.parametrize("twice", TWICE.values(), ids=TWICE)
async def test_calls_that_can_be_told_apart_the_second_time_run_once(
    twice: AIMessage, database: Database
) -> None:
    runs: list[str] = []
    again = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"}))
    model = Scripted(twice, again, answering())
    graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
    state = await ask(graph, "A and B?")
    assert sorted(runs) == ["c1", "c2"]
    assert state["answer"]["status"] == "answered"
    check(model.last)


async def test_calls_that_langchain_dropped_are_not_lost_in_silence(database: Database) -> None:
    runs: list[str] = []
    half = responses(GOOD, ("c2", "get_order", '{"order_id":"B"}'))
    half.tool_calls = half.tool_calls[:1]
    model = Scripted(half, half, half)
    graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
    state = await ask(graph, "A and B?")
    assert runs == []
    assert state["answer"]["status"] == "failed"


@pytest.mark.parametrize(
    "call_id",
    ["c/1", "1/c", "call_1.2", "functions.get_order:0", "Ж", "😀", "a b", "x" * 85, "0", "None"],
)
async def test_any_text_may_be_a_call_id(call_id: str, database: Database) -> None:
    model = Scripted(
        calling((call_id, "get_order", {"order_id": "A"}), ("c", "get_order", {"order_id": "B"})),
        calling((call_id, "get_order", {"order_id": "A-17"})),
        answering((call_id, "{order_id} {status}")),
    )
    state = await ask(graph_of(model, database=database), "A, B and A-17?")
    assert results_of(state) == {
        f"1/{call_id}": ("A", "ok"),
        "1/c": ("B", "ok"),
        f"2/{call_id}": ("A-17", "ok"),
    }
    assert state["answer"]["cards"][0]["subject"] == "A-17"
    check(model.last)


async def test_item_ids_are_kept_beside_call_ids(database: Database) -> None:
    model = Scripted(responses(GOOD), answering())
    state = await ask(graph_of(model, database=database), "And A?")
    (call,) = state["calls"]
    assert (call["call_id"], call["item_id"]) == ("c1", "fc_c1")
