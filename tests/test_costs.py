"""What a turn used and cost, beside figures worked out by hand from the vendors' own counts.

US dollars for a million tokens: gpt-5 takes 1.25 in, 0.125 from the cache, 10 out;
claude-sonnet-4-6 takes 3 in, 0.30 from the cache, 3.75 into it, 15 out.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from agent.costs import costs
from agent.pricing import price
from agent.turn import Turn
from agent.usage import cost, of_body, spent
from tests import commands
from tests.fault_server import Told, changed, delivery, says, serving, status, whole
from tests.ingest import ingest, metadata
from tests.scripted import Scripted, answering, calling
from tests.test_tracing import traced
from tests.turns import ask, config_of, decide, failing, graph_of, pending, question
from tests.writes import CANCEL, script
from tools.database import Database
from tools.registry import TOOLS, WRITES

QUESTION = "When does A-17 arrive?"
CALL = delivery("call_a", "A-17")
NAMED = {
    "responses": "openai:gpt-5",
    "chat": "openai:gpt-5",
    "messages": "anthropic:claude-sonnet-4-6",
}
USED: dict[str, dict[str, Any]] = {
    "responses": {
        "input_tokens": 1000,
        "output_tokens": 100,
        "total_tokens": 1100,
        "input_tokens_details": {"cached_tokens": 600},
        "output_tokens_details": {"reasoning_tokens": 40},
    },
    "chat": {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 40},
    },
    "messages": {
        "input_tokens": 300,
        "output_tokens": 100,
        "cache_read_input_tokens": 600,
        "cache_creation_input_tokens": 100,
    },
}
# 400 × 1.25 + 600 × 0.125 + 100 × 10, and 300 × 3 + 600 × 0.30 + 100 × 3.75 + 100 × 15.
RESPONSE = {"responses": "0.001575", "chat": "0.001575", "messages": "0.002955"}
every_protocol = pytest.mark.parametrize("name", list(NAMED))


def of(usage: Mapping[str, int]) -> tuple[int, ...]:
    names = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
    return tuple(usage[name] for name in names)


def answers(name: str) -> Any:
    draft = answering(("call_a", "{parcels}")).text
    return whole(says(text=draft, **USED[name]))


@every_protocol
async def test_a_turn_costs_what_its_responses_cost(name: str, database: Database) -> None:
    with serving(whole(says(CALL, **USED[name])), answers(name)) as server:
        settings = server.settings(name, model=NAMED[name])
        state = await ask(graph_of(settings=settings, database=database), QUESTION)
    reasoning = 0 if name == "messages" else 80
    assert of(state["usage"]) == (2000, 200, 1200, reasoning)
    assert Decimal(state["cost_usd"]) == 2 * Decimal(RESPONSE[name])
    [row] = await costs(database, "turn")
    assert (row["turn"], row["cost_usd"], row["responses"]) == ("thread-1/1", state["cost_usd"], 2)


def in_every_chunk(name: str, told: Told) -> Told:
    running = {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001}
    stream = [{"usage": running, **event} for event in told.stream]
    return replace(told, stream=stream)


def twice(name: str, told: Told) -> Told:
    last = -1 if name == "chat" else -2
    return replace(told, stream=[*told.stream[:last], told.stream[last], *told.stream[last:]])


@pytest.mark.parametrize(
    ("name", "change"), [("chat", in_every_chunk), ("chat", twice), ("messages", twice)]
)
async def test_counts_that_are_told_again_count_once(
    name: str, change: Any, database: Database
) -> None:
    with serving(changed(says(CALL, **USED[name]), change), answers(name)) as server:
        settings = server.settings(name, model=NAMED[name])
        state = await ask(graph_of(settings=settings, database=database), QUESTION)
    assert of(state["usage"])[:3] == (2000, 200, 1200)
    assert Decimal(state["cost_usd"]) == 2 * Decimal(RESPONSE[name])


def incomplete(name: str, told: Told, kind: str = "response.incomplete") -> Told:
    last = told.stream[-1]["response"]
    ended = {**last, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return replace(told, stream=[*told.stream[:-1], {"type": kind, "response": ended}])


def called_completed(name: str, told: Told) -> Told:
    return incomplete(name, told, "response.completed")


BROKEN = {
    "responses": (changed(says(CALL, **USED["responses"]), incomplete), "0.001575"),
    "chat": (
        changed(says(CALL), lambda _, t: replace(in_every_chunk(_, t), until='tool_calls"')),
        "0.00126",
    ),
    # Reported by then: 300 × 3 + 600 × 0.30 + 100 × 3.75 + 1 × 15.
    "messages": (whole(says(CALL, **USED["messages"]), until="message_delta"), "0.00147"),
}


@every_protocol
async def test_a_response_that_broke_off_costs_what_its_vendor_reported(
    name: str, database: Database
) -> None:
    broken, lost = BROKEN[name]
    with serving(broken, whole(says(CALL, **USED[name])), answers(name)) as server:
        settings = server.settings(name, model=NAMED[name])
        state = await ask(graph_of(settings=settings, database=database), QUESTION)
    assert [each["ended"] for each in state["spent"]] == ["stream_interrupted", "ok", "ok"]
    assert Decimal(state["cost_usd"]) == Decimal(lost) + 2 * Decimal(RESPONSE[name])


COUNTS: dict[str, tuple[Any, tuple[int, ...] | None]] = {
    "whole": (USED["chat"], (1000, 100, 600, 40)),
    "details as a list": ({**USED["responses"], "input_tokens_details": [1]}, (1000, 100, 0, 40)),
    "details as a number": ({**USED["chat"], "completion_tokens_details": 7}, (1000, 100, 600, 0)),
    "details as text": ({**USED["chat"], "prompt_tokens_details": "7"}, (1000, 100, 0, 40)),
    "a detail that is true": (
        {**USED["chat"], "prompt_tokens_details": {"cached_tokens": True}},
        (1000, 100, 0, 40),
    ),
    "a null": ({**USED["chat"], "prompt_tokens": None}, None),
    "a text": ({**USED["responses"], "output_tokens": "7"}, None),
    "true": ({**USED["messages"], "input_tokens": True}, None),
    "none of the output yet": ({"input_tokens": 5}, (5, 0, 0, 0)),
    "no object": ([7], None),
}


@pytest.mark.parametrize("case", COUNTS.values(), ids=COUNTS)
def test_what_is_no_count_is_not_known_and_never_nothing(
    case: tuple[Any, tuple[int, ...] | None],
) -> None:
    told, counted = case
    used = of_body(told)
    assert (used and of(used)) == counted


async def test_a_response_that_contradicts_its_end_costs_what_it_reported(
    database: Database,
) -> None:
    broken = changed(says(CALL, **USED["responses"]), called_completed)
    with serving(broken, answers("responses")) as server:
        settings = server.settings("responses", model=NAMED["responses"])
        state = await ask(graph_of(settings=settings, database=database), QUESTION)
    assert [each["ended"] for each in state["spent"]] == ["stream_interrupted", "ok"]
    assert {each["cost_usd"] for each in state["spent"]} == {RESPONSE["responses"]}


async def test_odd_details_of_usage_leave_a_broken_response_one(database: Database) -> None:
    def odd(name: str, told: Told) -> Told:
        used = {"prompt_tokens": 1000, "completion_tokens": 1, "prompt_tokens_details": [600]}
        stream = [{"usage": used, **event} for event in told.stream]
        return replace(told, stream=stream, until='tool_calls"')

    with serving(changed(says(CALL), odd), whole(says(CALL)), answers("chat")) as server:
        settings = server.settings("chat", model=NAMED["chat"])
        state = await ask(graph_of(settings=settings, database=database), QUESTION)
    assert [each["ended"] for each in state["spent"]] == ["stream_interrupted", "ok", "ok"]
    assert of(state["spent"][0]["usage"]) == (1000, 1, 0, 0)


async def test_a_trace_says_what_each_try_and_the_turn_cost(tmp_path: Path) -> None:
    broken, lost = BROKEN["messages"]
    with ingest() as traces, traced(traces, tmp_path) as client:
        with serving(broken, answers("messages")) as server:
            settings = server.settings("messages", model=NAMED["messages"])
            state = await ask(graph_of(settings=settings), QUESTION)
        client.flush()
    [told] = [metadata(run)["spent"] for run in traces.runs.values() if run["name"] == "model"]
    assert [(each["ended"], each["cost_usd"]) for each in told] == [
        ("stream_interrupted", lost),
        ("ok", RESPONSE["messages"]),
    ]
    [root] = traces.roots
    assert (
        metadata(root)["cost_usd"]
        == state["cost_usd"]
        == str(Decimal(lost) + Decimal(RESPONSE["messages"]))
    )


async def test_a_response_that_was_not_used_is_paid_too(database: Database) -> None:
    told = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    cut = AIMessage("", response_metadata={"finish_reason": "length"}, usage_metadata=told)
    state = await ask(graph_of(Scripted(cut, answering()), database=database), "Hello")
    assert of(state["usage"]) == (10, 2, 0, 0)
    [row] = await costs(database, "day")
    assert (row["responses"], row["unreported"]) == (2, 1)


async def test_what_is_not_known_is_never_nothing(database: Database) -> None:
    state = await ask(graph_of(Scripted(answering()), database=database), "Hello")
    assert state["cost_usd"] is None
    [row] = await costs(database, "thread")
    assert (row["cost_usd"], row["known_usd"], row["unknown"]) == (None, "0", 1)
    usage = {"input_tokens": 1, "output_tokens": 1}
    assert price("openai:nobody-knows-it", usage, datetime.now(UTC)) is None
    assert cost([spent(1, "ok", ["openai:nobody-knows-it"], usage)], {}, {}) is None


@pytest.mark.parametrize(
    "answered",
    [[whole(says(CALL), until="arguments")] * 3, [status(400)]],
    ids=["broken", "refused"],
)
async def test_where_no_response_said_what_it_used_nothing_is_known(
    answered: list[Any], database: Database
) -> None:
    with serving(*answered) as server:
        settings = server.settings("chat", model=NAMED["chat"])
        state = await ask(graph_of(settings=settings, database=database), QUESTION)
    assert (state["answer"]["status"], state["cost_usd"]) == ("failed", None)
    [row] = await costs(database, "turn")
    assert (row["cost_usd"], row["unreported"]) == (None, len(answered))


def test_a_price_is_that_of_its_day() -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    before, since = (
        price("openai:o3", usage, datetime(2025, month, 20, tzinfo=UTC)) for month in (5, 6)
    )
    assert before is not None
    assert since is not None
    assert before > since


async def test_a_call_costs_what_its_tool_says_unless_it_was_not_made(database: Database) -> None:
    priced = [replace(tool, cost=Decimal("0.002")) for tool in TOOLS]
    two = calling(
        ("call_a", "get_order", {"order_id": "A-17"}),
        ("call_b", "get_order", {"order_id": "B-21"}),
        ("call_c", "get_order", {"order": "B-21"}),
    )
    tools = failing(priced, ["call_b"])
    state = await ask(graph_of(Scripted(two, answering()), tools=tools), "A-17 and B-21?")
    assert cost([], state["results"], {tool.name: tool for tool in tools}) == Decimal("0.004")


async def test_a_write_whose_receipt_is_told_again_costs_nothing(database: Database) -> None:
    priced = [replace(tool, cost=2) for tool in (*TOOLS, *WRITES)]
    graph = graph_of(script(CANCEL, ("c2", *CANCEL[1:])), tools=priced, database=database)
    await graph.ainvoke(question("Cancel A-17, please."), config_of())
    state = await decide(graph, **dict.fromkeys(await pending(graph), "confirm"))
    results = state["results"]
    assert [result["data"]["repeated"] for result in results.values()] == [False, True]
    assert cost([], results, {tool.name: tool for tool in priced}) == 2


def test_a_turn_that_began_before_its_cost_was_kept_is_not_known() -> None:
    began: Any = {
        "messages": [HumanMessage("Hello", id="m1"), AIMessage("", id="m2")],
        "turn": 1,
        "round": 1,
        "calls": [],
        "results": {},
    }
    cases: Any = (({**began, "spent": []}, Decimal("0.00001125")), (began, None))
    for state, expected in cases:
        turn = Turn(state)
        turn.spends("openai:gpt-5", "ok", None, {"input_tokens": 1, "output_tokens": 1})
        assert cost(turn.spent, {}, {}) == expected


BUDGET = {
    "en": ("When does A-17 arrive?", "what one answer may cost"),
    "es": ("¿Cuándo llega el pedido A-17?", "lo que puede costar"),
    "ru": ("Когда придёт заказ A-17?", "может стоить один ответ"),
    "zh": ("订单 A-17 什么时候到？", "费用上限"),
}


@pytest.mark.parametrize("language", BUDGET)
async def test_a_budget_ends_the_turn_with_what_is_known(language: str, database: Database) -> None:
    question, said = BUDGET[language]
    with serving(whole(says(CALL, **USED["responses"]))) as server:
        settings = server.settings("responses", model=NAMED["responses"], turn_budget="0.0015")
        state = await ask(graph_of(settings=settings, database=database), question)
        assert len(server.requests) == 1
    assert state["answer"]["status"] == "answered"
    assert [card["subject"] for card in state["answer"]["cards"]] == ["A-17"]
    assert said in state["messages"][-1].text


def test_a_budget_needs_a_price() -> None:
    done = commands.here("ask", "Hello", SUPPORT_TURN_BUDGET="1")
    commands.refused(done, "SUPPORT_TURN_BUDGET", "offline", "Nothing was started")


def test_costs_are_shown_by_whatever_they_are_added_up() -> None:
    first = commands.here("ask", QUESTION, "--json")
    commands.here("ask", "And B-21?", "--thread", first.json["thread_id"])
    for by, rows in {"turn": 2, "thread": 1, "customer": 1, "day": 1}.items():
        told = commands.here("costs", "--by", by, "--json").json
        assert len(told) == rows
        assert sum(row["turns"] for row in told) == 2
        assert all(row["cost_usd"] is None for row in told)
    shown = commands.here("costs").out
    assert "turns: 2" in shown
    assert "unknown" in shown


def test_a_turn_that_waits_or_was_left_has_its_cost_noted() -> None:
    asked = commands.here("ask", "Cancel A-17, please.", "--json")
    assert asked.code == 3
    waiting = commands.here("costs", "--by", "turn", "--json").json
    assert [row["responses"] for row in waiting] == [1]
    commands.here("ask", "Never mind. Where is B-21?", "--thread", asked.json["thread_id"])
    left = commands.here("costs", "--by", "turn", "--json").json
    assert [row["responses"] for row in left] == [1, 2]
