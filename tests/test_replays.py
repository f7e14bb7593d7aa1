"""A client replays or forks a turn that refunded: nothing is done again without a new yes."""

from typing import Any

import pytest
from langgraph.types import Command

from agent.graph import Graph
from tests.ledgers import events, refunded
from tests.scripted import Scripted, answering, calling
from tests.turns import config_of, decide, graph_of, own, pending, question
from tools.database import Database

pytestmark = pytest.mark.on_both("long")

REFUND = {"order_id": "B", "amount": "10", "currency": "USD", "reason": "broken"}
ONCE, TWICE = [("B", "10")], [("B", "10")] * 2


def _script(messages: Any) -> Any:
    """Asks for the refund where it has not been told of one, and answers where it has."""
    told = messages[-1].type == "tool"
    return answering() if told else calling(("c1", "request_refund", REFUND))


async def _refunded(database: Database) -> tuple[Graph, list[Any]]:
    """A turn that refunded, and its checkpoints, the newest first."""
    graph = graph_of(Scripted(*[_script] * 40), database=database)
    await graph.ainvoke(question("Refund 10 USD of B"), config_of())
    await decide(graph, c1="confirm")
    assert await refunded(database) == ONCE
    return graph, [each async for each in graph.aget_state_history(config_of())]


async def test_each_checkpoint_that_is_replayed_leaves_one_refund_and_a_mark(
    database: Database,
) -> None:
    graph, history = await _refunded(database)
    for snapshot in history:
        before = (await events(database)).count("told_again")
        await graph.ainvoke(None, snapshot.config)
        assert await refunded(database) == ONCE
        marks = (await events(database)).count("told_again") - before
        assert marks == 1 or "call" not in snapshot.next
    assert (await events(database)).count("done") == 1


async def test_each_checkpoint_that_is_forked_leaves_one_refund(database: Database) -> None:
    graph, history = await _refunded(database)
    for snapshot in history:
        fork = await graph.aupdate_state(snapshot.config, {"news": []})
        await graph.ainvoke(None, fork)
        assert await refunded(database) == ONCE
    assert (await events(database)).count("done") == 1


async def test_the_question_forked_twice_asks_anew_and_only_a_new_yes_refunds_again(
    database: Database,
) -> None:
    graph, history = await _refunded(database)
    for _ in range(2):  # the first time, the receipt is told again
        assert not await pending(graph)
        await graph.ainvoke(None, history[-1].config)
    assert await refunded(database) == ONCE
    [pause] = (await pending(graph)).values()
    await graph.ainvoke(Command(resume={pause.id: own(pause, "maybe")}), config_of())
    assert await refunded(database) == ONCE
    await decide(graph, c1="confirm")
    assert await refunded(database) == TWICE
