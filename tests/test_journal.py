"""The journal: what outlives a turn, and whose it is."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from sqlalchemy import select

from agent import tables
from agent.history.langchain import check
from agent.identity import stated
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    ask,
    cards_of,
    config_of,
    counting,
    failing,
    graph_of,
    question,
    results_of,
    told,
)
from tools.database import Database
from tools.ids import OrderId
from tools.registry import TOOLS
from tools.tool import Context, tool

pytestmark = pytest.mark.on_both("long")

GOOD = "{order_id} {status}"


async def _rows(database: Database, table: Any, *order: str) -> list[Any]:
    query = select(table).order_by(*(table.c[name] for name in order))
    async with database.connect() as db:
        return list((await db.execute(query)).mappings())


async def test_every_call_has_a_row_of_its_own(database: Database) -> None:
    model = Scripted(
        calling(
            ("call_0", "get_order", {"order_id": "A"}), ("call_1", "get_order", {"order_id": "Z-9"})
        ),
        calling(("call_0", "get_delivery", {"order_id": "B"})),
        answering(),
        calling(("call_0", "list_orders", {})),
        answering(),
    )
    graph = graph_of(model, database=database)
    await ask(graph, "A, Z-9 and B?")
    await ask(graph, "And all of them?")
    rows = await _rows(database, tables.calls, "turn", "round", "place")
    keys = [(row["turn"], row["round"], row["call_id"], row["subject"]) for row in rows]
    assert keys == [
        (1, 1, "call_0", "A"),
        (1, 1, "call_1", "Z-9"),
        (1, 2, "call_0", "B"),
        (2, 1, "call_0", ""),
    ]
    for row in rows:
        assert row["call"]["call_id"] == row["result"]["call_id"] == row["call_id"]
        assert row["call"]["name"] == row["result"]["tool"]
        assert row["thread_id"] == "thread-1"


async def test_a_turn_is_noted_with_its_question_and_its_answer(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})), answering(("c1", GOOD)), ConnectionError()
    )
    graph = graph_of(model, database=database)
    await ask(graph, "How is A?")
    await ask(graph, "And B?")
    first, second = await _rows(database, tables.turns, "turn")
    assert (first["question"], first["answer"]["message"]) == ("How is A?", "A on its way")
    assert (second["question"], second["answer"]["status"]) == ("And B?", "failed")
    assert first["begun_at"] <= first["ended_at"] <= second["begun_at"]


async def test_a_card_may_name_a_call_of_an_earlier_turn(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"})),
        answering(("c1", GOOD), ("c2", GOOD)),
        answering(("c2", "{order_id} {status}: {total}"), opening="About B:"),
    )
    graph = graph_of(model, database=database)
    await ask(graph, "How are A and B?")
    state = await ask(graph, "What does the second one cost?")
    assert state["answer"]["message"] == "About B:\nB shipped: $87.15"
    assert results_of(state) == {}


async def test_this_turn_comes_before_earlier_ones_with_the_same_id(database: Database) -> None:
    model = Scripted(
        calling(("call_0", "get_order", {"order_id": "A"})),
        answering(),
        calling(("call_0", "get_order", {"order_id": "B"})),
        answering(("call_0", GOOD)),
        answering(("call_0", GOOD)),
    )
    graph = graph_of(model, database=database)
    await ask(graph, "A?")
    second = await ask(graph, "B?")
    third = await ask(graph, "Once more?")
    assert second["answer"]["message"] == third["answer"]["message"] == "B shipped"


async def test_a_card_does_not_reach_past_a_newer_call_of_the_same_id_that_failed(
    database: Database,
) -> None:
    model = Scripted(
        calling(("call_0", "get_order", {"order_id": "A"})),
        answering(),
        calling(("call_0", "get_order", {"order_id": "Z-9"})),
        answering(),
        answering(("call_0", GOOD)),
    )
    graph = graph_of(model, database=database)
    for text in ("A?", "Z-9?"):
        await ask(graph, text)
    state = await ask(graph, "Once more?")
    assert "A on its way" not in state["answer"]["message"]


async def test_a_card_of_another_threads_call_shows_nothing(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})), answering(), answering(("c1", GOOD))
    )
    graph = graph_of(model, database=database)
    await ask(graph, "A?", "thread-1")
    state = await ask(graph, "And the first one?", "thread-2")
    assert state["answer"]["cards"] == []


async def test_ids_that_the_thread_named_may_be_repeated_and_no_others(
    database: Database,
) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A-17"})),
        answering(),
        answering(opening="Do you mean A-17?"),
        answering(opening="Do you mean A-18?"),
    )
    graph = graph_of(model, database=database)
    await ask(graph, "How is A-17?")
    assert (await ask(graph, "And it?"))["answer"]["message"] == "Do you mean A-17?"
    assert "A-18" not in (await ask(graph, "And it?"))["answer"]["message"]


async def test_a_thread_of_somebody_else_does_not_exist(database: Database) -> None:
    runs: list[str] = []
    saver = InMemorySaver()
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})),
        answering(("c1", GOOD)),
        answering(("c1", GOOD)),
    )
    options: Any = {"tools": counting(TOOLS, runs), "database": database, "checkpointer": saver}
    owner = graph_of(model, **options)
    stranger = graph_of(model, customer="C-1002", **options)
    await ask(owner, "How is A?")
    state = await ask(stranger, "How is A-17?")
    assert state["answer"]["status"] == "failed"
    assert state["answer"]["error"]["kind"] == "no_such_thread"
    assert state["answer"]["message"] == "There is no such conversation. Nothing was looked up."
    assert state["answer"]["cards"] == []
    assert (len(model.requests), runs) == (2, ["c1"])
    assert len(await _rows(database, tables.turns, "turn")) == 1
    again = await ask(owner, "And once more?")
    assert again["answer"]["message"] == "A on its way"
    assert "A-17" not in repr(model.last)
    assert "no such conversation" not in repr(model.last)
    check(model.last)


async def test_a_strangers_message_does_not_close_the_owners_open_turn(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})), answering(opening="Hello again.")
    )
    options: Any = {"database": database, "checkpointer": InMemorySaver()}
    owner = graph_of(model, **options)
    await owner.ainvoke(question("How is A?"), config_of(), interrupt_before=["call"])
    state = await ask(graph_of(model, customer="C-1002", **options), "And mine?")
    assert state["answer"]["error"]["kind"] == "no_such_thread"
    assert "mine" not in repr(state["messages"])
    again = await ask(owner, "Hello?")
    assert again["answer"]["message"] == "Hello again."
    assert [id_ for id_, _ in told(model.last)] == ["c1"]
    check(model.last)


async def test_a_thread_whose_state_was_lost_never_shows_its_old_results_as_new(
    database: Database,
) -> None:
    """A local server that is killed forgets its last seconds; the journal does not."""
    old = Scripted(calling(("call_0", "get_order", {"order_id": "A"})), answering())
    await ask(graph_of(old, database=database), "How is A?")
    model = Scripted(
        calling(("call_0", "get_order", {"order_id": "B"})),
        answering(("call_0", GOOD)),
        answering(("call_0", GOOD)),
    )
    graph = graph_of(model, database=database)
    assert (await ask(graph, "How is B?"))["answer"]["message"] == "B shipped"
    assert (await ask(graph, "Once more?"))["answer"]["message"] == "B shipped"


async def test_a_thread_whose_state_was_lost_is_not_settled_with_old_results(
    database: Database,
) -> None:
    old = Scripted(calling(("call_0", "get_order", {"order_id": "A"})), answering())
    await ask(graph_of(old, database=database), "How is A?")
    model = Scripted(calling(("call_0", "get_order", {"order_id": "B"})), answering())
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("How is B?"), config_of(), interrupt_before=["call"])
    await ask(graph, "Hello?")
    ((call_id, output),) = told(model.last)
    assert (call_id, output["order_id"]) == ("call_0", "B")


async def test_a_turn_told_again_from_an_old_checkpoint_keeps_its_own_results(
    database: Database,
) -> None:
    model = Scripted(
        answering(opening="Hello."),
        calling(("call_0", "get_order", {"order_id": "A"})),
        answering(),
        calling(("call_0", "get_order", {"order_id": "B"})),
        answering(),
        answering(("call_0", GOOD)),
    )
    graph = graph_of(model, database=database)
    await ask(graph, "Hello?")
    early = (await graph.aget_state(config_of())).config
    await ask(graph, "How is A?")
    await graph.ainvoke(question("How is B?"), early)
    state = await ask(graph, "Once more?")
    assert state["answer"]["message"] == "B shipped"


class OldView(BaseModel):
    order_id: str


class NewView(BaseModel):
    order_id: str
    city: str


@tool(subject="order_id", required=("order_id",), sentence="{order_id}")
async def find(ctx: Context, order_id: OrderId) -> OldView:
    """Finds an order, as it did last week."""
    return OldView(order_id=order_id)


_find_last_week = find


async def test_a_result_from_before_a_tool_was_changed_or_removed_is_not_shown(
    database: Database,
) -> None:
    @tool(subject="order_id", required=("city",), sentence="{order_id} {city}")
    async def find(ctx: Context, order_id: OrderId) -> NewView:
        """Finds an order, as it does today."""
        return NewView(order_id=order_id, city="Vienna")

    saver = InMemorySaver()
    model = Scripted(
        calling(("c1", "find", {"order_id": "A"})),
        answering(),
        answering(("c1", "{order_id} {city}")),
        answering(("c1", "{order_id}")),
    )
    options: Any = {"database": database, "checkpointer": saver}
    await ask(graph_of(model, tools=[_find_last_week], **options), "A?")
    for tools in ([find], []):
        state = await ask(graph_of(model, tools=tools, **options), "Once more?")
        assert state["answer"]["status"] == "answered"
        assert state["answer"]["cards"] == []
        assert "{" not in state["answer"]["message"]


async def test_nobody_can_take_over_a_thread_by_signing_in(database: Database) -> None:
    options: Any = {"database": database, "checkpointer": InMemorySaver()}
    model = Scripted(answering(opening="Hello."), answering(opening="Hello."))
    nobody = graph_of(model, **{**options, "identity": lambda config: None})
    await ask(nobody, "Hello?")
    state = await ask(graph_of(model, **options), "Hello?")
    assert state["answer"]["error"]["kind"] == "no_such_thread"
    assert stated("C-1001")({}) == "C-1001"


async def test_failures_are_kept_too(database: Database) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"})),
        answering(),
    )
    tools = failing(TOOLS, ["c2"])
    state = await ask(graph_of(model, tools=tools, database=database), "A and B?")
    rows = await _rows(database, tables.calls, "place")
    assert [row["result"]["status"] for row in rows] == ["ok", "error"]
    assert [row["result"] for row in rows] == [state["results"][key] for key in ("1/c1", "1/c2")]
    assert set(cards_of(state)) == {"c1", "c2"}
