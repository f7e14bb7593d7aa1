"""A result is about what was asked (promises P1 and P4), and an id is one order alone."""

from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from agent.graph import Graph
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    THREE,
    ask,
    cards_of,
    graph_of,
    results_of,
)
from tools.database import Database
from tools.ids import OrderId
from tools.shop.models import Customer, Order, Parcel
from tools.shop.protocol import Shop
from tools.shop.sql import SqlShop
from tools.tool import Context, tool

pytestmark = pytest.mark.on_both("long")


class View(BaseModel):
    order_id: str
    city: str = "Vienna"


@tool(subject="order_id", required=("order_id",), sentence="{order_id}: {city}")
async def find(ctx: Context, order_id: OrderId) -> View:
    """Answers about the order; some orders make it go wrong."""
    return View(order_id=_OTHER.get(order_id, order_id))


_OTHER = {"X": "Y", "EMPTY": "", "ENDLESS": "A" * 5000, "HIDDEN": "\x00", "CUT": "CU"}


@pytest.mark.parametrize("order_id", _OTHER)
async def test_a_tool_that_answers_about_something_else_is_caught(
    order_id: str, database: Database
) -> None:
    model = Scripted(
        calling(("c1", "find", {"order_id": order_id}), ("c2", "find", {"order_id": "B"})),
        answering(("c1", "{order_id} {city}"), ("c2", "{order_id} {city}")),
    )
    state = await ask(graph_of(model, tools=[find], database=database), "And these?")
    assert results_of(state) == {"1/c1": (order_id, "wrong_subject"), "1/c2": ("B", "ok")}
    assert "Vienna" not in cards_of(state)["c1"]["text"]
    assert cards_of(state)["c2"]["text"] == "B Vienna"


class Chapter(BaseModel):
    topic: str


@tool(subject="topic", required=("topic",), sentence="{topic}")
async def read_chapter(ctx: Context, topic: str) -> Chapter:
    """A tool about something that is no order."""
    return Chapter(topic=topic)


@pytest.mark.parametrize("topic", ["returns", "Our returns", "Größe", "№ 5", "a" * 100])
async def test_a_subject_need_not_be_an_order(topic: str, database: Database) -> None:
    model = Scripted(calling(("c1", "read_chapter", {"topic": topic})), answering())
    state = await ask(graph_of(model, tools=[read_chapter], database=database), "Returns?")
    assert results_of(state) == {"1/c1": (topic, "ok")}


@dataclass(frozen=True)
class MixedUpShop:
    """A shop whose service gives away the data of another order."""

    shop: Shop
    orders: dict[str, str] = field(default_factory=dict)
    parcels_of: dict[str, str] = field(default_factory=dict)

    async def customer(self, customer_id: str) -> Customer | None:
        return await self.shop.customer(customer_id)

    async def order(self, order_id: str) -> Order | None:
        return await self.shop.order(self.orders.get(order_id, order_id))

    async def orders_of(self, customer_id: str) -> list[Order]:
        return await self.shop.orders_of(customer_id)

    async def parcels(self, order: Order) -> list[Parcel]:
        other = await self.shop.order(self.parcels_of.get(order.order_id, order.order_id))
        assert other is not None
        return await self.shop.parcels(other)


def _mixed_up(model: Scripted, database: Database, **swaps: dict[str, str]) -> Graph:
    return graph_of(model, database=database, shop=MixedUpShop(SqlShop(database), **swaps))


async def test_a_shop_that_answers_about_another_order_is_caught(database: Database) -> None:
    model = Scripted(calling(*THREE), answering(("c1", "{order_id} {status}")))
    state = await ask(_mixed_up(model, database, orders={"A": "B"}), "A, B and A-18?")
    assert results_of(state) == {
        "1/c1": ("A", "wrong_subject"),
        "1/c2": ("B", "ok"),
        "1/c3": ("A-18", "ok"),
    }
    assert cards_of(state)["c1"]["text"] == (
        "I could not check order A: the service answered about something else."
    )
    assert "87.15" not in repr(state["results"]["1/c1"])


async def test_a_shop_that_gives_another_orders_parcels_is_caught(database: Database) -> None:
    model = Scripted(calling(*THREE), answering(("c3", "{order_id} {parcels}")))
    state = await ask(_mixed_up(model, database, parcels_of={"A-18": "B"}), "A, B and A-18?")
    assert results_of(state)["1/c3"] == ("A-18", "wrong_subject")
    assert results_of(state)["1/c1"] == ("A", "ok")
    assert "Kestrel" not in repr(state["results"]["1/c3"])


async def test_a_shop_that_gives_somebody_elses_order_is_not_believed(database: Database) -> None:
    model = Scripted(calling(*THREE), answering())
    state = await ask(_mixed_up(model, database, orders={"A": "D-300"}), "A, B and A-18?")
    assert results_of(state)["1/c1"] == ("A", "not_found")
    assert "D-300" not in repr(state)


async def test_a_comparison_never_mixes_in_another_order(database: Database) -> None:
    model = Scripted(calling(("c1", "compare_orders", {"order_ids": ["A", "B"]})), answering())
    state = await ask(_mixed_up(model, database, orders={"A": "A-17"}), "A and B together?")
    assert results_of(state) == {"1/c1": ("", "wrong_subject")}


@pytest.mark.parametrize(
    "typed", [" a-17 ", "Ａ－１７", "A‑17", "#a-17", "A\u200b-17", "a\u00a0-\u00a017"]
)
async def test_an_id_is_the_same_order_however_it_is_typed(typed: str, database: Database) -> None:
    model = Scripted(calling(("c1", "get_order", {"order_id": typed})), answering())
    state = await ask(graph_of(model, database=database), "And my order?")
    assert results_of(state) == {"1/c1": ("A-17", "ok")}
    assert state["results"]["1/c1"]["arguments"] == {"order_id": "A-17"}


@pytest.mark.parametrize("typed", ["А-17", "A17", "A-017", "A-1", "A-17-", "Α-17"])
async def test_an_id_that_only_looks_alike_is_no_other_order(
    typed: str, database: Database
) -> None:
    model = Scripted(calling(("c1", "get_order", {"order_id": typed})), answering())
    state = await ask(graph_of(model, database=database), "And my order?")
    assert [kind for _, kind in results_of(state).values()] == ["not_found"]


async def test_leading_zeros_make_another_order(database: Database) -> None:
    model = Scripted(
        calling(
            ("c1", "get_order", {"order_id": "00123"}),
            ("c2", "get_order", {"order_id": "123"}),
            ("c3", "get_order", {"order_id": 123}),
        ),
        answering(),
    )
    state = await ask(graph_of(model, customer="C-1002", database=database), "And 00123?")
    assert list(results_of(state).values()) == [
        ("00123", "ok"),
        ("123", "not_found"),
        ("", "invalid_arguments"),
    ]
