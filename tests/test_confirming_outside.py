"""Writes in a turn on a shop outside: what it has not finished, or not said, is told as that."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from agent.graph import Graph
from agent.settings import Settings
from tests.scripted import Scripted, answering, calling
from tests.shop_server import TOKEN, Behaviour, ShopServer, good, held, hung_up, serving, status
from tests.test_ledger_outside import on_changes, on_lookups
from tests.turns import ask, config_of, decide, graph_of, question, results_of, told
from tools.database import Database
from tools.shop.http import HttpShop

pytestmark = pytest.mark.on_both("long")

CANCEL = ("c1", "cancel_order", {"order_id": "A-17", "reason": "late"})
REFUND = (
    "c1",
    "request_refund",
    {"order_id": "A", "amount": "10", "currency": "USD", "reason": "x"},
)


@asynccontextmanager
async def _asked(
    database: Database, model: Scripted, behaviour: Behaviour = good
) -> AsyncIterator[tuple[Graph, ShopServer]]:
    """A graph on the shop's API, waiting for a confirmation."""
    with serving(behaviour) as server:
        shop = HttpShop(server.url, SecretStr(TOKEN))
        settings = Settings(tool_timeout=1.5)
        graph = graph_of(model, database=database, shop=shop, settings=settings)
        try:
            await graph.ainvoke(question("Cancel A-17, refund A"), config_of())
            yield graph, server
        finally:
            await shop.close()


@pytest.mark.parametrize("reason", ["", "ORDER_LEFT"], ids=["done", "not done"])
async def test_what_is_accepted_is_said_as_asked_for_and_later_what_became_of_it(
    reason: str, database: Database
) -> None:
    hello = answering(opening="I have cancelled order A-17.")
    model = Scripted(calling(CANCEL), hello, hello, hello, answering())
    async with _asked(database, model) as (graph, server):
        state = await decide(graph, c1="confirm")
        assert "requested, not finished yet" in state["answer"]["message"]
        assert "I have cancelled" not in state["answer"]["message"]
        assert "cancel" not in (await ask(graph, "hello?"))["answer"]["message"]
        server.changes.finish(reason)
        state = await ask(graph, "And now?")
        [(_, output)] = told(model.last)
        assert output["status"] == ("error" if reason else "ok")
        assert ("A-17: done." in state["answer"]["message"]) is not bool(reason)
        assert "A-17" not in (await ask(graph, "Thanks"))["answer"]["message"]


async def test_the_same_asked_again_after_a_timeout_that_had_committed_gets_the_first_receipt(
    database: Database,
) -> None:
    model = Scripted(
        calling(REFUND), answering(), calling(REFUND), calling(REFUND), answering(), answering()
    )
    async with _asked(database, model, on_changes(hung_up)) as (graph, server):
        first = await decide(graph, c1="confirm")
        assert results_of(first) == {"1/c1": ("A", "ok")}
        again = await ask(graph, "Refund 10 USD of A")
        assert again["results"]["1/c1"]["data"]["repeated"] is True
        assert len(server.changes.made) == 1


async def test_what_is_not_known_is_said_looked_up_and_told_when_it_is(database: Database) -> None:
    other = ("c2", "request_refund", {**REFUND[2], "amount": "5"})
    model = Scripted(
        calling(REFUND), answering(), calling(other), answering(), answering(opening="Hi.")
    )
    reachable: list[bool] = []

    def lookup(exchange: Any) -> None:
        (good if reachable else status(500))(exchange)

    behaviour = on_lookups(lookup, held)
    async with _asked(database, model, behaviour) as (graph, server):
        state = await decide(graph, c1="confirm")
        assert results_of(state) == {"1/c1": ("A", "unknown_outcome")}
        assert "not known" in state["answer"]["message"]
        await graph.ainvoke(question("Then refund 5 USD of A"), config_of())
        blocked = await decide(graph, c2="confirm")
        assert results_of(blocked) == {"1/c2": ("A", "refused")}
        reachable.append(True)
        later = await ask(graph, "And now?")
        assert "Refund of $10.00 for order A: done." in later["answer"]["message"]
        assert len(server.changes.made) == 1
