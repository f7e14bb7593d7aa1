"""The shop behind an HTTP API, over real sockets: what it understands, and what it does not."""

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from agent.settings import Settings
from tests.responses_server import nobody_listens
from tests.scripted import Scripted, answering, calling
from tests.shop_server import (
    TOKEN,
    Behaviour,
    ShopServer,
    about,
    body,
    changed,
    cut,
    good,
    held,
    hung_up,
    serving,
    status,
    together,
)
from tests.turns import DEMO_CUSTOMER, ask, cards_of, graph_of, results_of
from tools.database import Database
from tools.failures import ServiceError, WrongSubject
from tools.shop.http import ATTEMPTS, LONGEST_PAUSE, MOST_PAGES, HttpShop
from tools.shop.protocol import CustomerShop, OrderNotFound, Shop
from tools.shop.sql import SqlShop

FOREIGN = "00123"


@asynccontextmanager
async def shop_on(
    *behaviours: Behaviour, token: str = TOKEN, hangs_up: bool = False
) -> AsyncIterator[tuple[HttpShop, ShopServer]]:
    """The shop with its server, both closed afterwards."""
    with serving(*behaviours, hangs_up=hangs_up) as server:
        shop = HttpShop(server.url, SecretStr(token))
        try:
            yield shop, server
        finally:
            await shop.close()


async def _everything(shop: Shop) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for customer_id in [f"C-100{n}" for n in range(1, 10)]:
        customer = await shop.customer(customer_id)
        orders = await shop.orders_of(customer_id)
        looked_up = [await shop.order(order.order_id) for order in orders]
        parcels = [await shop.parcels(order) for order in orders]
        found[customer_id] = (
            customer and customer.model_dump(mode="json"),
            [order.model_dump(mode="json") for order in orders],
            [order and order.model_dump(mode="json") for order in looked_up],
            [parcel.model_dump(mode="json") for each in parcels for parcel in each],
        )
    return found


async def test_it_gives_the_same_answers_as_the_shop_in_the_database(database: Database) -> None:
    async with shop_on() as (shop, _):
        everything = await _everything(shop)
    assert everything == await _everything(SqlShop(database))
    assert len(everything[DEMO_CUSTOMER][1]) == 5


async def test_what_the_api_does_not_have_is_none() -> None:
    async with shop_on() as (shop, _):
        assert await shop.customer("C-9999") is None
        assert await shop.order("Z-404") is None
        assert await shop.orders_of("C-9999") == []


async def test_an_order_that_the_api_answers_404_for_is_none() -> None:
    async with shop_on(status(404)) as (shop, _):
        assert await shop.order("A-17") is None


async def test_a_list_that_the_api_does_not_have_is_no_empty_list() -> None:
    async with shop_on(good, status(404)) as (shop, _):
        order = await shop.order("A-17")
        assert order is not None
        with pytest.raises(ServiceError):
            await shop.parcels(order)
        with pytest.raises(ServiceError):
            await shop.orders_of(DEMO_CUSTOMER)


@pytest.mark.parametrize("customer_id", ["c-1001", "..", "../orders", "C-1001/../C-1002", "?", "#"])
async def test_only_the_customer_that_was_asked_for_is_believed(customer_id: str) -> None:
    dana = {"id": "C-1001", "full_name": "Dana", "email": "dana@example.com", "language": "en"}
    async with shop_on(lambda exchange: exchange.send(200, dana), good) as (shop, server):
        assert await shop.customer(customer_id) is None
        assert await shop.customer(DEMO_CUSTOMER) is not None
        assert [path.count("/") for path in server.requests[1:]] == [3]


async def test_anothers_order_cannot_be_told_from_one_that_does_not_exist() -> None:
    seen = []
    async with shop_on() as (shop, server):
        for order_id in (FOREIGN, "99999"):
            with pytest.raises(OrderNotFound) as raised:
                await CustomerShop(shop, DEMO_CUSTOMER).order(order_id)
            asked = [path.replace(order_id, "ID") for path in server.requests]
            seen.append((str(raised.value).replace(order_id, "ID"), asked))
            server.requests.clear()
    assert seen[0] == seen[1]


async def test_an_answer_about_another_number_is_passed_on_and_caught() -> None:
    def another(content: Any) -> None:
        content["orders"][0]["number"] = "B-21"

    async with shop_on(changed(another)) as (shop, _):
        order = await shop.order("A-17")
        assert order is not None
        assert order.order_id == "B-21"
        with pytest.raises(WrongSubject):
            await CustomerShop(shop, DEMO_CUSTOMER).order("A-17")


async def test_of_several_orders_the_one_that_was_asked_for_counts() -> None:
    def similar(content: Any) -> None:
        content["orders"].insert(0, {**content["orders"][0], "number": "A-170"})

    async with shop_on(changed(similar)) as (shop, _):
        order = await shop.order("A-17")
    assert order is not None
    assert order.order_id == "A-17"


async def test_parcels_of_another_order_are_passed_on_and_caught() -> None:
    def another(content: Any) -> None:
        content["shipments"][-1]["order_number"] = "B-21"

    async with shop_on(good, changed(another)) as (shop, _):
        mine = CustomerShop(shop, DEMO_CUSTOMER)
        with pytest.raises(WrongSubject):
            await mine.parcels(await mine.order("A-18"))


async def test_order_numbers_of_the_api_are_normalised() -> None:
    def typed(content: Any) -> None:
        content["orders"][0]["number"] = " #a‑17 "

    async with shop_on(changed(typed)) as (shop, _):
        order = await shop.order("A-17")
    assert order is not None
    assert order.order_id == "A-17"


async def test_no_tool_can_show_the_internal_id() -> None:
    async with shop_on() as (shop, server):
        order = await shop.order("A-18")
        assert order is not None
        assert len(await shop.parcels(order)) == 2
        internal = server.requests[-1].split("/")[3]
    assert internal.startswith("ord%2F")
    assert internal[6:] not in f"{order!r} {order.model_dump()} {order.model_dump_json()}"


async def test_all_pages_of_a_list_are_read() -> None:
    async with shop_on() as (shop, server):
        orders = await shop.orders_of(DEMO_CUSTOMER)
        assert len(server.requests) == 3
    assert [order.order_id for order in orders] == ["B-21", "A", "B", "A-17", "A-18"]


async def test_an_order_that_moves_to_the_next_page_meanwhile_is_listed_once() -> None:
    def twice(content: Any) -> None:
        content["orders"] += content["orders"]

    async with shop_on(changed(twice)) as (shop, _):
        assert len(await shop.orders_of(DEMO_CUSTOMER)) == 5


@pytest.mark.parametrize("cursors", [["again"], ["one", "two", "one"], ["one", "two", "two"]])
async def test_a_cursor_that_comes_again_ends_the_list_with_an_error(cursors: list[str]) -> None:
    coming = iter(cursors * 2)

    def on_and_on(content: Any) -> None:
        content["next"] = next(coming)

    def from_the_start(exchange: Any) -> None:
        exchange.content = {"orders": [], "next": None}
        changed(on_and_on)(exchange)

    async with shop_on(from_the_start) as (shop, server):
        with pytest.raises(ServiceError, match="has no end"):
            await shop.orders_of(DEMO_CUSTOMER)
        assert len(server.requests) == len(cursors) + (len(cursors) == 1)


async def test_a_list_of_ever_new_pages_ends_with_an_error() -> None:
    def always_another(exchange: Any) -> None:
        exchange.send(200, {"orders": [], "next": str(len(exchange.server.requests))})

    async with shop_on(always_another) as (shop, server):
        with pytest.raises(ServiceError, match="has no end"):
            await shop.orders_of(DEMO_CUSTOMER)
        assert len(server.requests) == MOST_PAGES


PASSING = {
    "429": status(429),
    "429, again in no time": status(429, retry_after="0"),
    "429, again after a day that is past": status(429, retry_after="Fri, 13 Nov 2020 10:00:00 GMT"),
    "429, again after nobody knows": status(429, retry_after="soon"),
    "500": status(500),
    "502": status(502),
    "503": status(503, retry_after="0"),
    "a connection that ends": hung_up,
    "half an answer": cut,
}


@pytest.mark.parametrize("trouble", PASSING.values(), ids=PASSING)
async def test_trouble_that_passes_is_not_noticed(trouble: Behaviour) -> None:
    async with shop_on(trouble, good) as (shop, server):
        assert await shop.order("A-17") is not None
        assert len(server.requests) == 2


@pytest.mark.parametrize("trouble", PASSING.values(), ids=PASSING)
async def test_trouble_that_stays_ends_after_a_few_attempts(trouble: Behaviour) -> None:
    async with shop_on(trouble) as (shop, server):
        with pytest.raises(ServiceError):
            await shop.order("A-17")
        assert len(server.requests) == ATTEMPTS


async def test_the_pause_that_the_shop_asks_for_is_kept() -> None:
    async with shop_on(status(429, retry_after="1"), good) as (shop, _):
        began = time.monotonic()
        assert await shop.order("A-17") is not None
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(
    "after", [str(int(LONGEST_PAUSE) + 1), "86400", "9" * 400, "Fri, 13 Nov 2099 10:00:00 -0000"]
)
async def test_a_shop_that_asks_for_a_long_pause_is_busy(after: str) -> None:
    async with shop_on(status(429, retry_after=after), good) as (shop, server):
        with pytest.raises(ServiceError, match="The shop is busy"):
            await shop.order("A-17")
        assert len(server.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 400, 401, 403, 409, 410, 422])
async def test_what_another_attempt_cannot_help_is_tried_once(code: int) -> None:
    async with shop_on(status(code, location="/api/orders?number=A-17")) as (shop, server):
        with pytest.raises(ServiceError):
            await shop.order("A-17")
        assert len(server.requests) == 1


async def test_a_shop_that_nobody_runs_is_an_error() -> None:
    shop = HttpShop(nobody_listens(), SecretStr(TOKEN))
    with pytest.raises(ServiceError, match="could not be reached"):
        await shop.order("A-17")
    await shop.close()


NO_ORDERS = {
    "HTML": body(b"<!doctype html><h1>A-17</h1>", content_type="text/html"),
    "nothing": body(b""),
    "null": body(b"null"),
    "a list": body(b"[]"),
    "half": body(b'{"orders": [{"id": "ord/'),
    "no UTF-8": body(b'{"orders": [], "next": "\xff"}'),
    "broken compression": body(b"no zip", content_encoding="gzip"),
    "no next": body(b'{"orders": []}'),
    "deep": body(b'{"orders": ' + b"[" * 100_000),
}


@pytest.mark.parametrize("answer", NO_ORDERS.values(), ids=NO_ORDERS)
async def test_an_answer_that_is_none_is_an_error(answer: Behaviour) -> None:
    async with shop_on(answer) as (shop, _):
        with pytest.raises(ServiceError):
            await shop.order("A-17")
        with pytest.raises(ServiceError):
            await shop.orders_of(DEMO_CUSTOMER)


def _with(*path: str | int, value: Any = ...) -> Callable[[Any], None]:
    """Sets what stands at the path within an order; without a value, removes it."""

    def change(content: Any) -> None:
        at = content["orders"][0]
        for step in path[:-1]:
            at = at[step]
        if value is ...:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


CENTS = {"cent_amount": 100, "fraction_digits": 2, "currency": "EUR"}
NOT_UNDERSTOOD = {
    "no id": _with("id"),
    "a number as id": _with("id", value=17),
    "no number": _with("number"),
    "an empty number": _with("number", value=" # "),
    "a number that is too long": _with("number", value="A" * 65),
    "no owner": _with("customer_id"),
    "a status that nobody knows": _with("state", value="TELEPORTED"),
    "our own status": _with("state", value="confirmed"),
    "no status": _with("state", value=None),
    "a time that is none": _with("created_at", value="yesterday"),
    "a time in seconds": _with("created_at", value=1763000000),
    "a time in seconds as text": _with("created_at", value="1763000000"),
    "a 30th of February": _with("created_at", value="2026-02-30T10:00:00Z"),
    "a float as amount": _with("total", "cent_amount", value=5840.0),
    "a text as amount": _with("total", "cent_amount", value="5840"),
    "too many digits": _with("total", "fraction_digits", value=20),
    "negative digits": _with("total", "fraction_digits", value=-2),
    "no currency": _with("total", "currency", value=""),
    "an item in another currency": _with("lines", 0, "unit_price", value=CENTS),
    "true as a number of pieces": _with("lines", 0, "count", value=True),
    "half a piece": _with("lines", 0, "count", value=0.5),
    "no items": _with("lines", value=None),
    "no address": _with("shipping_address"),
}


@pytest.mark.parametrize("change", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
async def test_an_order_that_is_not_understood_is_an_error(change: Callable[[Any], None]) -> None:
    async with shop_on(changed(change)) as (shop, _):
        with pytest.raises(ServiceError) as raised:
            await shop.order("A-17")
    assert str(raised.value) == "The shop's answer could not be understood."


@pytest.mark.parametrize("name", ["id", "order_number", "carrier", "due_at", "transit_days"])
async def test_a_parcel_that_is_not_understood_is_an_error(name: str) -> None:
    def spoil(content: Any) -> None:
        content["shipments"][-1][name] = None

    async with shop_on(good, changed(spoil)) as (shop, _):
        order = await shop.order("A-18")
        assert order is not None
        with pytest.raises(ServiceError, match="could not be understood"):
            await shop.parcels(order)


async def test_twenty_questions_are_asked_at_once(database: Database) -> None:
    async with shop_on(together(20)) as (shop, server):
        orders = await asyncio.gather(*(shop.order(id_) for id_ in ["A", "B", "A-17", "A-18"] * 5))
        assert server.connections == 20
        assert [o and o.order_id for o in orders] == ["A", "B", "A-17", "A-18"] * 5


async def test_connections_are_used_again_and_closed(caplog: pytest.LogCaptureFixture) -> None:
    with serving(hangs_up=False) as server:
        shop = HttpShop(server.url, SecretStr(TOKEN))
        for _ in range(5):
            await shop.order("A-17")
        assert server.connections == 1
        await shop.close()
        await shop.close()
        await shop.order("A-17")
        assert server.connections == 2
        await shop.close()


def test_it_serves_several_event_loops() -> None:
    async def ask_twice(shop: HttpShop) -> None:
        assert await shop.order("A") is not None
        assert await shop.order("B") is not None
        await shop.close()

    async def ask_and_leave(shop: HttpShop) -> None:
        assert await shop.order("A") is not None

    with serving() as server:
        shop = HttpShop(server.url, SecretStr(TOKEN))
        asyncio.run(ask_and_leave(shop))
        asyncio.run(ask_twice(shop))
        asyncio.run(ask_and_leave(shop))
        assert len(shop._clients) == 1


async def _fails(shop: HttpShop) -> list[str]:
    said = []
    for question in (shop.customer(DEMO_CUSTOMER), shop.order("A-17"), shop.orders_of("C-1001")):
        with pytest.raises(ServiceError) as raised:
            await question
        said += [*traceback.format_exception(raised.value), repr(raised.value)]
    return said


SECRET = [*PASSING.values(), *NO_ORDERS.values(), *map(status, (301, 400, 401, 403, 418))]


@pytest.mark.parametrize("trouble", SECRET)
async def test_neither_token_nor_answer_is_in_an_error_or_in_the_log(
    trouble: Behaviour, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with shop_on(trouble) as (shop, _):
        said = "\n".join([*await _fails(shop), caplog.text, repr(shop)])
    assert TOKEN not in said
    assert "C-1002" not in said


@pytest.mark.parametrize("token", ["another", ""])
async def test_a_wrong_token_is_an_error(token: str) -> None:
    async with shop_on(token=token) as (shop, server):
        with pytest.raises(ServiceError, match="did not let this agent in"):
            await shop.order("A-17")
        assert len(server.requests) == 1


BOTH = [("c1", "get_delivery", {"order_id": "A"}), ("c2", "get_delivery", {"order_id": "B"})]


async def _turn(shop: Shop, database: Database, **options: Any) -> Any:
    model = Scripted(calling(*BOTH), answering(("c2", "{order_id}: {days} {parcels}")))
    settings = Settings(model="offline", **options)
    graph = graph_of(model, database=database, shop=shop, settings=settings)
    return await ask(graph, "When do A and B arrive?")


TROUBLES = {
    "429 for ever": (status(429, retry_after="0"), "service_error"),
    "500": (status(500), "service_error"),
    "no answer": (held, "timeout"),
    "HTML": (body(b"<html>"), "service_error"),
    "half": (cut, "service_error"),
}


@pytest.mark.parametrize(("trouble", "kind"), TROUBLES.values(), ids=TROUBLES)
async def test_trouble_with_one_order_leaves_the_other_alone(
    trouble: Behaviour, kind: str, database: Database
) -> None:
    seconds = 0.5 if kind == "timeout" else 10
    async with shop_on(about("B", trouble)) as (shop, _):
        state = await _turn(shop, database, tool_timeout=seconds)
    assert results_of(state) == {"1/c1": ("A", "ok"), "1/c2": ("B", kind)}
    cards = cards_of(state)
    assert "JC0256002853" in cards["c1"]["text"]
    assert cards["c2"]["values"] == {}
