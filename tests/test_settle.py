"""A turn that was broken off, and the next one on the same thread."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.graph import Graph
from agent.history.langchain import check
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    ask,
    cards_of,
    config_of,
    counting,
    graph_of,
    question,
    results_of,
    told,
)
from tools.database import Database
from tools.registry import TOOLS
from tools.tool import Arguments, Context, Tool

pytestmark = pytest.mark.on_both("long")

BOTH = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"}))
SECOND = calling(("c1", "get_order", {"order_id": "A-17"}))
GOOD = "{order_id} {status}"


def _waiting(call_id: str, begun: asyncio.Event) -> list[Tool]:
    """The tools, of which one call never comes back."""

    def waiting(tool: Tool) -> Tool:
        async def run(ctx: Context | None, arguments: Arguments, id_: str) -> Any:
            if id_ == call_id:
                begun.set()
                await asyncio.Event().wait()
            return await tool.run(ctx, arguments, id_)

        return replace(tool, run=run)

    return [waiting(tool) for tool in TOOLS]


async def _cancelled(graph: Graph, begun: asyncio.Event, text: str) -> None:
    turn = asyncio.create_task(graph.ainvoke(question(text), config_of()))
    await begun.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


async def test_a_turn_cancelled_among_its_calls_is_closed_by_the_next_one(
    database: Database,
) -> None:
    begun = asyncio.Event()
    model = Scripted(BOTH, SECOND, answering(("c1", GOOD)))
    graph = graph_of(model, tools=_waiting("c2", begun), database=database)
    await _cancelled(graph, begun, "A and B?")
    before = (await graph.aget_state(config_of())).values["messages"]
    state = await ask(graph, "Only A-17, please.")

    kinds = [message.type for message in model.requests[1]]
    assert kinds == ["human", "ai", "tool", "tool", "human"]
    assert [(id_, output["error"]["kind"]) for id_, output in told(model.requests[1])] == [
        ("c1", "not_kept"),
        ("c2", "not_kept"),
    ]
    check(model.requests[1])
    check(state["messages"])
    assert {m.id for m in before} <= {m.id for m in state["messages"]}
    assert results_of(state) == {"1/c1": ("A-17", "ok")}
    assert [(c["subject"], c["text"]) for c in state["answer"]["cards"]] == [
        ("A-17", "A-17 confirmed")
    ]
    assert state["begun"]["number"] == 2


@pytest.mark.parametrize(
    ("stop", "kept"),
    [
        ({"interrupt_before": ["call"]}, "not_kept"),
        ({"interrupt_after": ["call"]}, "ok"),
    ],
    ids=["after the model", "after the calls"],
)
async def test_a_turn_killed_between_two_steps_is_closed_by_the_next_one(
    stop: dict[str, Any], kept: str, database: Database
) -> None:
    runs: list[str] = []
    model = Scripted(BOTH, SECOND, answering(("c1", GOOD)))
    graph = graph_of(model, tools=counting(TOOLS, runs), database=database)
    await graph.ainvoke(question("A and B?"), config_of(), **stop)
    before = (await graph.aget_state(config_of())).values["messages"]
    state = await ask(graph, "Only A-17, please.")

    kinds = [message.type for message in model.requests[1]]
    assert kinds == ["human", "ai", "tool", "tool", "human"]
    outputs = told(model.requests[1])
    assert [id_ for id_, _ in outputs] == ["c1", "c2"]
    if kept == "ok":
        assert [output["data"]["order_id"] for _, output in outputs] == ["A", "B"]
        assert sorted(runs) == ["c1", "c1", "c2"]
    else:
        assert [output["error"]["kind"] for _, output in outputs] == ["not_kept", "not_kept"]
        assert runs == ["c1"]
    assert {m.id for m in before} <= {m.id for m in state["messages"]}
    assert state["answer"]["message"] == "A-17 confirmed"
    check(state["messages"])


async def test_a_turn_killed_in_a_later_round_keeps_the_rounds_before(database: Database) -> None:
    begun = asyncio.Event()
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})),
        calling(("c1", "get_order", {"order_id": "B"}), ("c9", "get_order", {"order_id": "A-18"})),
        SECOND,
        answering(("c1", GOOD)),
    )
    graph = graph_of(model, tools=_waiting("c9", begun), database=database)
    await _cancelled(graph, begun, "A, B and A-18?")
    state = await ask(graph, "Only A-17, please.")
    said = [(id_, output["order_id"], output["status"]) for id_, output in told(model.requests[2])]
    assert said == [("c1", "A", "ok"), ("c1", "B", "error"), ("c9", "A-18", "error")]
    assert cards_of(state)["c1"]["subject"] == "A-17"
    check(model.requests[2])


async def test_two_turns_broken_off_in_a_row_are_both_closed(database: Database) -> None:
    model = Scripted(BOTH, BOTH, answering(opening="Hello again."))
    graph = graph_of(model, database=database)
    for text in ("A and B?", "A and B, please!"):
        await graph.ainvoke(question(text), config_of(), interrupt_before=["call"])
    state = await ask(graph, "Hello?")
    assert [m.type for m in model.last] == ["human", "ai", "tool", "tool"] * 2 + ["human"]
    assert state["answer"]["message"] == "Hello again."
    ids = [m.id for m in state["messages"]]
    assert len(ids) == len(set(ids))
    check(model.last)


async def test_several_messages_after_a_turn_broken_off_stay_in_their_order(
    database: Database,
) -> None:
    model = Scripted(BOTH, answering(opening="Hello again."))
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("A and B?"), config_of(), interrupt_before=["call"])
    two: Any = {"messages": [HumanMessage("Hello?"), HumanMessage("Are you there?")]}
    await graph.ainvoke(two, config_of())
    assert [m.text for m in model.last if m.type == "human"] == [
        "A and B?",
        "Hello?",
        "Are you there?",
    ]
    check(model.last)


async def test_an_empty_message_after_a_turn_broken_off_leaves_a_whole_thread(
    database: Database,
) -> None:
    model = Scripted(BOTH, answering(opening="Hello again."))
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("A and B?"), config_of(), interrupt_before=["call"])
    assert (await ask(graph, " "))["answer"]["error"]["kind"] == "empty_question"
    state = await ask(graph, "Hello?")
    assert [m.type for m in model.last] == ["human", "ai", "tool", "tool", "human"]
    assert state["answer"]["message"] == "Hello again."
    check(model.last)


async def test_a_turn_broken_off_can_be_resumed_instead(database: Database) -> None:
    model = Scripted(BOTH, answering(("c1", GOOD), ("c2", GOOD)))
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("A and B?"), config_of(), interrupt_before=["call"])
    state = await graph.ainvoke(None, config_of())
    assert state["answer"]["message"] == "A on its way\nB shipped"


async def test_a_turn_that_fails_at_its_second_response_keeps_what_it_found(
    database: Database,
) -> None:
    model = Scripted(BOTH, ConnectionError("hunter2"), SECOND, answering(("c1", GOOD)))
    graph = graph_of(model, database=database)
    failed = await ask(graph, "A and B?")
    assert failed["answer"]["status"] == "failed"
    assert failed["answer"]["error"]["kind"] == "model_unavailable"
    assert list(cards_of(failed)) == ["c1", "c2"]
    assert failed["answer"]["message"].endswith(
        "I cannot answer at the moment. Nothing was changed. Please try again in a few minutes."
    )
    assert "hunter2" not in repr(failed)
    check(failed["messages"])
    later = await ask(graph, "Only A-17, please.")
    assert later["answer"]["message"] == "A-17 confirmed"
    check(model.last)


async def test_a_turn_that_fails_at_once_leaves_a_thread_that_goes_on(database: Database) -> None:
    model = Scripted(ConnectionError(), SECOND, answering(("c1", GOOD)))
    graph = graph_of(model, database=database)
    failed = await ask(graph, "A and B?")
    assert failed["answer"]["status"] == "failed"
    later = await ask(graph, "Only A-17, please.")
    assert later["answer"]["message"] == "A-17 confirmed"
    check(model.last)


async def test_a_thread_in_a_file_is_closed_by_another_process(
    database: Database, tmp_path: Path
) -> None:
    """The second graph shares nothing with the first one but the files."""
    begun = asyncio.Event()
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        graph = graph_of(
            Scripted(BOTH), tools=_waiting("c2", begun), database=database, checkpointer=saver
        )
        await _cancelled(graph, begun, "A and B?")
    model = Scripted(SECOND, answering(("c1", GOOD)))
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        state = await ask(
            graph_of(model, database=database, checkpointer=saver), "Only A-17, please."
        )
    assert state["answer"]["message"] == "A-17 confirmed"
    assert [id_ for id_, _ in told(model.requests[0])] == ["c1", "c2"]
    check(model.requests[0])
    check(state["messages"])
