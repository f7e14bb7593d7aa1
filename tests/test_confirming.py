"""Writes in a turn: who confirms what, and what happens to everything else meanwhile."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Context as Elsewhere
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from agent.graph import Graph
from agent.history.langchain import check
from agent.ledger import Ledger
from agent.nodes import NotYours
from tests.ledgers import ledger_of
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    ask,
    cards_of,
    config_of,
    counting,
    decide,
    failing,
    finishing,
    graph_of,
    own,
    pending,
    question,
    results_of,
    told,
)
from tests.writes import CANCEL, READ, Call, effects, refund, script
from tools.database import Database
from tools.registry import TOOLS, WRITES
from tools.tool import Arguments, Context, Tool

pytestmark = pytest.mark.on_both


@pytest.mark.parametrize("together", [True, False], ids=["together", "one after the other"])
@pytest.mark.parametrize("order", list(itertools.permutations(["c1", "c2"])), ids="-".join)
@pytest.mark.parametrize("yes", ["c1", "c2"])
async def test_one_is_confirmed_and_the_other_rejected(
    yes: str, order: Sequence[str], together: bool, database: Database
) -> None:
    runs: list[str] = []
    model = script(CANCEL, refund("c2"), READ)
    graph = graph_of(model, tools=counting([*TOOLS, *WRITES], runs), database=database)
    await graph.ainvoke(question("Cancel A-17, refund B, and A?"), config_of())
    assert await effects(database) == ("confirmed", [])
    decisions = {id_: "confirm" if id_ == yes else "reject" for id_ in order}
    for step in [decisions] if together else [{id_: word} for id_, word in decisions.items()]:
        state = await decide(graph, **step)
    assert results_of(state) == {
        "1/c1": ("A-17", "ok" if yes == "c1" else "rejected"),
        "1/c2": ("B", "ok" if yes == "c2" else "rejected"),
        "1/c3": ("A", "ok"),
    }
    done = ("cancelled", []) if yes == "c1" else ("confirmed", [10])
    assert await effects(database) == done
    assert sorted(runs) == sorted([yes, "c3"])  # the read is not made again, nor the rejected one
    assert [id_ for id_, _ in told(model.last)] == ["c1", "c2", "c3"]
    assert len(cards_of(state)) == 3


UNCLEAR: dict[str, Any] = {
    "free text": "yes, do it",
    "nothing": "",
    "no": False,
    "an empty object": {},
    "an empty list": [],
    "another word": {"decision": "maybe"},
    "a list of none": {"decisions": []},
    "two for one": {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    "an edit": {
        "decisions": [{"type": "edit", "edited_action": {"name": "request_refund", "args": {}}}]
    },
    "a response": {"decisions": [{"type": "respond", "message": "done"}]},
    "no type": {"decisions": [{}]},
}


@pytest.mark.parametrize("answer", UNCLEAR.values(), ids=UNCLEAR)
async def test_an_unclear_answer_changes_nothing_and_is_asked_again(
    answer: Any, database: Database
) -> None:
    graph = graph_of(script(CANCEL, refund("c2")), database=database)
    await graph.ainvoke(question("Cancel A-17 and refund B"), config_of())
    await decide(graph, c1=answer)
    assert await effects(database) == ("confirmed", [])
    pauses = await pending(graph)
    assert set(pauses) == {"c1", "c2"}
    assert pauses["c1"].value["problem"]
    state = await decide(graph, c1="confirm", c2="confirm")
    assert await effects(database) == ("cancelled", [10])
    assert state["answer"]["status"] == "answered"


@pytest.mark.parametrize("answer", [None, {}, {"0" * 32: {"decision": "confirm"}}, "yes"], ids=str)
async def test_an_answer_that_names_no_pause_leaves_both(answer: Any, database: Database) -> None:
    graph = graph_of(script(CANCEL, refund("c2")), database=database)
    await graph.ainvoke(question("Cancel A-17 and refund B"), config_of())
    with suppress(RuntimeError, UnboundLocalError):  # LangGraph's own refusals
        await graph.ainvoke(Command(resume=answer), config_of())
    assert set(await pending(graph)) == {"c1", "c2"}
    assert await effects(database) == ("confirmed", [])


async def test_an_answer_for_another_call_or_other_arguments_does_not_count(
    database: Database,
) -> None:
    graph = graph_of(script(CANCEL, refund("c2")), database=database)
    await graph.ainvoke(question("Cancel A-17 and refund B"), config_of())
    pauses = await pending(graph)
    swapped = {
        "c1": own(pauses["c2"], "confirm"),
        "c2": {**own(pauses["c2"], "confirm"), "digest": "0"},
    }
    await decide(graph, **swapped)
    assert set(await pending(graph)) == {"c1", "c2"}
    assert await effects(database) == ("confirmed", [])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"decisions": [{"type": "approve"}]}, "ok"),
        ({"decisions": [{"type": "reject", "message": "not now"}]}, "rejected"),
        ({"type": "approve"}, "ok"),
    ],
    ids=["approve", "reject", "one decision"],
)
async def test_with_one_pending_the_answer_of_an_inbox_counts(
    answer: Any, kind: str, database: Database
) -> None:
    model = script(refund("c2"))
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("Refund B"), config_of())
    await graph.ainvoke(Command(resume=answer), config_of())
    state = (await graph.aget_state(config_of())).values
    assert results_of(state) == {"1/c2": ("B", kind)}
    assert (await effects(database))[1] == ([10] if kind == "ok" else [])
    if kind == "rejected":
        assert "not now" in told(model.last)[0][1]["error"]["message"]


async def test_an_answer_counts_for_one_question(database: Database) -> None:
    graph = graph_of(Scripted(calling(refund("c2")), calling(CANCEL)), database=database)
    await graph.ainvoke(question("Refund B"), config_of())
    await graph.ainvoke(Command(resume={"type": "approve"}), config_of())
    assert set(await pending(graph)) == {"c1"}
    assert await effects(database) == ("confirmed", [10])


async def _asked(graph: Graph) -> None:
    while True:
        if await pending(graph):
            return
        await asyncio.sleep(0.01)


def _waiting(gates: Mapping[str, asyncio.Event]) -> list[Tool]:
    """The write tools, of which some look at the order only when their gate is open."""

    def waiting(tool: Tool) -> Tool:
        async def check(ctx: Context, arguments: Arguments) -> None:
            await gates[tool.name].wait()
            if tool.check is not None:
                await tool.check(ctx, arguments)

        return replace(tool, check=check) if tool.name in gates else tool

    return [waiting(tool) for tool in WRITES]


@pytest.mark.parametrize("quick", ["cancel_order", "request_refund"])
async def test_an_answer_that_names_no_pause_is_for_no_question_that_was_not_put(
    quick: str, database: Database
) -> None:
    """A run was broken off when one of two questions was put; then its answer comes."""
    gates = {name: asyncio.Event() for name in ("cancel_order", "request_refund")}
    tools = [*TOOLS, *_waiting(gates)]
    graph = graph_of(script(CANCEL, refund("c2")), tools=tools, database=database)
    gates["cancel_order"].set()
    turn = asyncio.create_task(graph.ainvoke(question("Both"), config_of()))
    await _asked(graph)
    turn.cancel()
    with suppress(asyncio.CancelledError):
        await turn
    gates["cancel_order"].clear()
    gates[quick].set()
    for gate in gates.values():
        asyncio.get_running_loop().call_later(0.2, gate.set)
    await graph.ainvoke(Command(resume={"type": "approve"}), config_of())
    await graph.ainvoke(None, config_of())  # what LangGraph keeps of the answer is for nobody else
    assert await effects(database) == ("confirmed", [])


async def test_a_pause_asks_in_the_form_of_inbox_interfaces(database: Database) -> None:
    graph = graph_of(script(refund("c2")), database=database)
    await graph.ainvoke(question("Erstatten? Refund B"), config_of())
    asked = (await pending(graph))["c2"].value
    arguments = {"order_id": "B", "amount": "10", "currency": "USD", "reason": "broken"}
    [action] = asked["action_requests"]
    assert (action["name"], action["args"]) == ("request_refund", arguments)
    assert action["description"] == "Refund $10.00 for order B?"
    [review] = asked["review_configs"]
    assert review == {
        "action_name": "request_refund",
        "allowed_decisions": ["approve", "reject"],
    }
    assert (asked["call_id"], asked["subject"]) == ("c2", "B")


async def test_a_confirmation_waits_over_a_restart_and_counts_once(
    database: Database, tmp_path: Path
) -> None:
    file = str(tmp_path / "threads.db")
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        graph = graph_of(script(refund("c2")), checkpointer=saver, database=database)
        await graph.ainvoke(question("Refund B"), config_of())
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        graph = graph_of(script(answers=1), checkpointer=saver, database=database)
        again = graph_of(Scripted(answering()), checkpointer=saver, database=database)
        answer: Any = {p.id: own(p, "confirm") for p in (await pending(again)).values()}
        await again.ainvoke(Command(resume=answer), config_of())
        for _ in range(2):
            await graph.ainvoke(Command(resume=answer), config_of())
            assert (await graph.aget_state(config_of())).next == ()
        assert (await effects(database))[1] == [10]


@pytest.mark.parametrize("at_large", [True, False], ids=["names no pause", "by id"])
async def test_nobody_confirms_for_another_customer(at_large: bool, database: Database) -> None:
    saver = InMemorySaver()
    model = script(refund("c2"))
    owner = graph_of(model, checkpointer=saver, database=database)
    stranger = graph_of(model, checkpointer=saver, customer="C-1002", database=database)
    await owner.ainvoke(question("Refund B"), config_of())
    [pause] = (await pending(owner)).values()
    yes = own(pause, "confirm")
    with pytest.raises(NotYours):
        await stranger.ainvoke(Command(resume=yes if at_large else {pause.id: yes}), config_of())
    await owner.ainvoke(None, config_of())  # goes on with what LangGraph may have kept of it
    assert (await effects(database))[1] == []
    if not at_large:
        await decide(owner, c2="confirm")
        assert (await effects(database))[1] == [10]


EQUAL = {
    "keys in another order": dict(reversed(list(refund("c2")[2].items()))),
    "another way to write it": {**refund("c2")[2], "amount": "10.0"},
    "a number": {**refund("c2")[2], "amount": 10},
    "another reason": {**refund("c2")[2], "reason": "lost"},
    "an id in lower case": {**refund("c2")[2], "order_id": " b "},
}


@pytest.mark.parametrize("arguments", EQUAL.values(), ids=EQUAL)
@pytest.mark.parametrize("word", ["confirm", "reject"])
async def test_two_equal_writes_of_a_response_are_asked_and_done_once(
    word: str, arguments: dict[str, Any], database: Database
) -> None:
    model = script(refund("c2"), ("c4", "request_refund", arguments))
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("Refund B"), config_of())
    [(asked, _)] = (await pending(graph)).items()
    state = await decide(graph, **{asked: word})
    kinds = {kind for _, kind in results_of(state).values()}
    assert kinds == ({"ok"} if word == "confirm" else {"rejected"})
    assert [id_ for id_, _ in told(model.last)] == ["c2", "c4"]
    assert (await effects(database))[1] == ([10] if word == "confirm" else [])


async def test_the_same_asked_again_gets_the_first_receipt_and_on_purpose_it_is_asked_anew(
    database: Database,
) -> None:
    model = Scripted(
        *[line for n in range(3) for line in (calling(refund(f"c{n}")), answering())], answering()
    )
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("Refund 10 USD of B"), config_of())
    await decide(graph, c0="confirm")
    second = await ask(graph, "Refund 10 USD of B")
    assert not await pending(graph)
    assert second["results"]["1/c1"]["data"]["repeated"] is True
    assert "asked for before" in second["answer"]["message"]
    assert (await effects(database))[1] == [10]
    await graph.ainvoke(question("I mean another 10 USD of B"), config_of())
    [pause] = (await pending(graph)).values()
    assert pause.value["receipt"]["state"] == "done"
    assert "once more" in pause.value["action_requests"][0]["description"]
    await decide(graph, c2="confirm")
    assert (await effects(database))[1] == [10, 10]


async def test_a_model_that_repeats_a_refund_round_after_round_makes_one(
    database: Database,
) -> None:
    model = Scripted(*[calling(refund("c1")) for _ in range(12)])
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("Refund 10 USD of B"), config_of())
    state = await decide(graph, c1="confirm")
    assert state["answer"]["status"] == "answered"
    assert len(state["results"]) == 12
    assert (await effects(database))[1] == [10]
    check(state["messages"][:-1])


async def test_what_the_shop_would_refuse_is_never_asked(database: Database) -> None:
    delivered: Call = ("c1", "cancel_order", {"order_id": "B-21", "reason": "late"})
    foreign: Call = ("c2", "cancel_order", {"order_id": "00123", "reason": "late"})
    graph = graph_of(script(delivered, foreign, refund("c4", amount="900")), database=database)
    state = await ask(graph, "Cancel B-21 and 00123, and refund 900 of B")
    assert not await pending(graph)
    kinds = {key: kind for key, (_, kind) in results_of(state).items()}
    assert kinds == {"1/c1": "refused", "1/c2": "not_found", "1/c4": "refused"}


async def test_a_write_needs_somebody_signed_in_and_a_thread_that_is_kept(
    database: Database,
) -> None:
    unsigned = graph_of(script(CANCEL), database=database, identity=lambda _: None)
    state = await ask(unsigned, "Cancel A-17")
    assert results_of(state) == {"1/c1": ("A-17", "rejected")}
    graph = graph_of(script(CANCEL), database=database, checkpointer=None)
    state = await graph.ainvoke(question("Cancel A-17"))
    assert results_of(state) == {"1/c1": ("A-17", "not_executed")}
    assert await effects(database) == ("confirmed", [])


async def test_two_turns_at_once_write_once_and_the_older_writes_no_more(
    database: Database,
) -> None:
    saver = InMemorySaver()
    older = graph_of(script(refund("c1")), checkpointer=saver, database=database)
    await older.ainvoke(question("Refund 10 USD of B"), config_of())
    answer: Any = {p.id: own(p, "confirm") for p in (await pending(older)).values()}
    before = (await older.aget_state(config_of())).config
    newer = graph_of(Scripted(answering(opening="Hi.")), checkpointer=saver, database=database)
    await ask(newer, "hello?")
    await older.ainvoke(Command(resume=answer), before)  # from the checkpoint that was left behind
    assert (await effects(database))[1] == []


async def test_a_yes_on_its_way_while_a_message_withdraws_it_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver, noted, elsewhere = InMemorySaver(), Ledger.note, Elsewhere()
    older = graph_of(script(refund("c1")), checkpointer=saver, database=database)
    await older.ainvoke(question("Refund 10 USD of B"), config_of())
    answer: Any = {p.id: own(p, "confirm") for p in (await pending(older)).values()}
    before = (await older.aget_state(config_of())).config

    async def note(self: Ledger, write: Any, event: str, by: str, key: str = "") -> None:
        await noted(self, write, event, by, key)
        if event == "withdrawn":
            late = older.ainvoke(Command(resume=answer), before)
            await asyncio.get_running_loop().create_task(late, context=elsewhere)

    monkeypatch.setattr(Ledger, "note", note)
    newer = graph_of(Scripted(answering(opening="Hi.")), checkpointer=saver, database=database)
    assert "not done" in (await ask(newer, "hello?"))["answer"]["message"]
    assert (await effects(database))[1] == []


async def test_the_same_answer_given_by_many_at_once_is_carried_out_once(
    database: Database,
) -> None:
    graph = graph_of(script(refund("c1"), answers=10), database=database)
    await graph.ainvoke(question("Refund 10 USD of B"), config_of())
    answer: Any = {p.id: own(p, "confirm") for p in (await pending(graph)).values()}
    runs = [graph.ainvoke(Command(resume=answer), config_of()) for _ in range(5)]
    await asyncio.gather(*runs, return_exceptions=True)
    assert (await effects(database))[1] == [10]


async def test_every_checkpoint_of_a_refund_told_again_leaves_one_refund(
    database: Database,
) -> None:
    graph = graph_of(script(refund("c1"), answers=40), database=database)
    await graph.ainvoke(question("Refund 10 USD of B"), config_of())
    await decide(graph, c1="confirm")
    history = [snapshot async for snapshot in graph.aget_state_history(config_of())]
    for snapshot in history:
        await graph.ainvoke(None, snapshot.config)
        assert (await effects(database))[1] == [10]


async def test_an_answer_for_a_thread_that_nobody_began_does_nothing(database: Database) -> None:
    model = Scripted()
    graph = graph_of(model, database=database)
    yes: Any = {"decision": "confirm", "call_id": "c1", "digest": "0"}
    state: Any = await graph.ainvoke(Command(resume=yes), config_of())
    assert state["answer"]["error"]["kind"] == "empty_question"
    assert model.requests == []
    assert await ledger_of(database).records() == []


async def test_what_stands_before_the_pause_leaves_no_trace(database: Database) -> None:
    graph = graph_of(script(CANCEL, refund("c2")), database=database)
    await graph.ainvoke(question("Cancel A-17 and refund B"), config_of())
    await decide(graph, c1={"decision": "maybe"})
    ledger = ledger_of(database)
    assert (await ledger.records(), list(await ledger.events())) == ([], [])
    await decide(graph, c1="reject")
    assert [event["event"] for event in await ledger.events()] == ["rejected"]
    assert await ledger.records() == []


async def test_a_write_beside_a_call_that_fails_is_finished_and_told(database: Database) -> None:
    tools = finishing(failing([*TOOLS, *WRITES], ["c3"]), ["c3", "c2"])
    graph = graph_of(script(refund("c2"), READ), tools=tools, database=database)
    await graph.ainvoke(question("Refund B, and A?"), config_of())
    state = await decide(graph, c2="confirm")
    assert results_of(state) == {"1/c2": ("B", "ok"), "1/c3": ("A", "service_error")}
