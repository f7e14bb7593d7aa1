"""The ledger on a shop outside, over real sockets: what is not known is looked up by its key."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from agent.approvals import Approvals
from agent.ledger import Ledger
from agent.ledger_records import Outcome, Write
from tests.ledgers import (
    cancelling,
    escalating,
    events,
    ledger_of,
    moving,
    refunding,
    said,
    states,
)
from tests.responses_server import nobody_listens
from tests.shop_server import (
    TOKEN,
    Behaviour,
    Exchange,
    ShopServer,
    good,
    held,
    hung_up,
    serving,
    status,
)
from tools.database import Database
from tools.shop.http import HttpShop

pytestmark = pytest.mark.on_both("long")

AWAY = "9 Mill Lane, Salem, OR 97301, US"


def on_changes(*behaviours: Behaviour, then: Behaviour = good) -> Behaviour:
    """Behaviours for changes only, one each, then `then`; reads are answered."""
    left = list(behaviours)

    def choose(exchange: Exchange) -> None:
        if exchange.command == "GET":
            good(exchange)
        else:
            (left.pop(0) if left else then)(exchange)

    return choose


def on_lookups(behaviour: Behaviour, changes: Behaviour = good) -> Behaviour:
    """A behaviour where an operation is looked up, and another one for changes."""

    def choose(exchange: Exchange) -> None:
        if exchange.path_parts[0] == "operations":
            behaviour(exchange)
        else:
            (good if exchange.command == "GET" else changes)(exchange)

    return choose


def lost(exchange: Exchange) -> None:
    """The change never arrived: what the server made of it is forgotten, and nothing comes back."""
    exchange.server.changes.__init__()  # type: ignore[misc]
    exchange.server.released.wait(60)
    exchange.close_connection = True


@asynccontextmanager
async def ledger_on(
    database: Database, behaviour: Behaviour = good, **options: Any
) -> AsyncIterator[tuple[Ledger, ShopServer]]:
    with serving(behaviour) as server:
        shop = HttpShop(server.url, SecretStr(TOKEN))
        chosen = {"timeout": 0.7, "lease": 0.2, **options}
        try:
            yield ledger_of(database, shop=shop, **chosen), server
        finally:
            await shop.close()


async def test_a_change_is_made_once_under_its_key(database: Database) -> None:
    async with ledger_on(database) as (ledger, server):
        write = refunding("A", "10.0", call="1/1/c1")
        first, same = await ledger.write_once(write), await ledger.write_once(write)
        again = await ledger.write_once(refunding("A", "10", call="2/1/c1"))
        order = await HttpShop(server.url, SecretStr(TOKEN)).order("A")
    assert (said(first), said(again)) == ("done", "done, again")
    assert first == same
    assert server.changes.made == [("# a", "refunds")]
    assert list(server.changes.operations) == [first.key]
    assert order is not None
    assert str(order.refunded) == "10.00"


async def test_the_transaction_is_not_held_while_the_shop_is_asked(database: Database) -> None:
    async with ledger_on(database, on_changes(held), timeout=3) as (ledger, server):
        slow = asyncio.create_task(ledger.write_once(moving("A-17", AWAY)))
        while not server.changes.made:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.wait_for(ledger.begin_turn("thread-2", "turn 1"), 2)
        assert not slow.done()
        assert said(await slow) == "done"


@pytest.mark.parametrize(
    "failure", [held, hung_up, status(500), status(502), status(503, retry_after="60")]
)
async def test_a_change_that_was_made_without_an_answer_is_found_by_its_key(
    failure: Behaviour, database: Database
) -> None:
    async with ledger_on(database, on_changes(then=failure)) as (ledger, server):
        outcome = await ledger.write_once(refunding("A", "10", call="1/1/c1"))
        assert said(outcome) == "done"
        asked_again = refunding("A", "10", call="2/1/c1")
        assert said(await ledger.write_once(asked_again)) == "done, again"
    assert server.changes.made == [("# a", "refunds")]


async def test_a_shop_that_cannot_be_reached_has_done_nothing(database: Database) -> None:
    away = HttpShop(nobody_listens(), SecretStr(TOKEN))
    async with ledger_on(database) as (ledger, server):
        order = await ledger.tools.shop.order("A")
        shop: Any = ledger.tools.shop
        asked = shop.order

        class HalfAway(HttpShop):
            async def order(self, order_id: str) -> Any:
                return await asked(order_id)

        half = HalfAway(away.url, SecretStr(TOKEN))
        outcome = await ledger_of(database, shop=half).write_once(refunding("A", "10"))
        await half.close()
        assert order is not None
        assert outcome.error == {
            "kind": "service_error",
            "message": "The shop could not be reached.",
        }
        assert await states(database) == ["failed"]
        assert said(await ledger.write_once(refunding("A", "10"))) == "done"
    assert len(server.changes.made) == 1


async def test_what_the_shop_accepts_is_settled_when_it_is_done(database: Database) -> None:
    async with ledger_on(database) as (ledger, server):
        first = await ledger.write_once(cancelling("A-17", call="1/1/c1"))
        assert said(first) == "accepted"
        assert said(await ledger.write_once(cancelling("A-17"))) == "accepted, again"
        assert [(await ledger.settle(r)).state for r in await ledger.records()] == ["accepted"]
        server.changes.finish()
        assert [(await ledger.settle(r)).state for r in await ledger.records()] == ["done"]
        assert [r.state for r in await ledger.records()] == ["done"]
        assert said(await ledger.write_once(cancelling("A-17"))) == "done, again"
        record = await ledger.of_call("thread-1", "1/1/c1")
        assert record is not None
        assert record.receipt == {"state": "done", "repeated": False, "order_id": "A-17"}
    heard = ["claimed", "accepted", "told_again", "done", "told_again"]
    assert await events(database) == heard
    assert len(server.changes.made) == 1


async def test_what_the_shop_accepts_and_does_not_do_is_refused_in_the_end(
    database: Database,
) -> None:
    async with ledger_on(database) as (ledger, server):
        write = cancelling("A-17", call="1/1/c1")
        assert said(await ledger.write_once(write)) == "accepted"
        server.changes.finish("ORDER_LEFT")
        outcome = await ledger.write_once(write)
        assert said(outcome) == "refused"
        assert "left the house" in str(outcome.error)
        assert said(await ledger.write_once(cancelling("A-17", call="2/1/c1"))) == "accepted"
    assert await events(database) == ["claimed", "accepted", "failed", "claimed", "accepted"]


async def test_unknown_stays_unknown_and_stops_every_write_about_the_subject(
    database: Database,
) -> None:
    reachable = False

    def lookup(exchange: Exchange) -> None:
        (good if reachable else status(500))(exchange)

    failing = on_lookups(lookup, changes=held)
    async with ledger_on(database, failing, timeout=1.5) as (ledger, server):
        write = refunding("A-17", "10", call="1/1/c1")
        assert said(await ledger.write_once(write)) == "unknown_outcome"
        assert said(await ledger.write_once(write)) == "unknown_outcome"
        for other in (refunding("A-17", "11"), cancelling("A-17"), moving("A-17", AWAY)):
            outcome = await ledger.write_once(other)
            assert said(outcome) == "refused"
            assert "not known yet" in str(outcome.error)
        assert said(await ledger.write_once(escalating())) == "done"
        assert len(server.changes.made) == 1
        reachable = True
        assert said(await ledger.write_once(write)) == "done"
    assert await states(database) == ["done", "done"]


async def test_a_change_that_the_shop_never_received_is_made_under_the_same_key(
    database: Database,
) -> None:
    async with ledger_on(database, on_changes(lost)) as (ledger, server):
        write = refunding("A", "10", call="1/1/c1")
        first = await ledger.write_once(write)
        assert said(first) == "unknown_outcome"
        await asyncio.sleep(0.3)
        second = await ledger.write_once(refunding("A", "10", call="2/1/c1"))
        assert (said(second), second.key) == ("done", first.key)
    assert await events(database) == ["claimed", "unknown", "failed", "claimed", "done"]
    assert server.changes.made == [("# a", "refunds")]


async def test_a_claim_that_lapsed_is_looked_up_before_it_is_taken_over(
    database: Database,
) -> None:
    async with ledger_on(database, lease=-1.5) as (ledger, server):
        write = refunding("A", "10", call="1/1/c1")
        record = await ledger._claim(write, 0, None, "")
        await ledger.tools.receipt(write, record.key)  # and here its process was killed
        assert said(await ledger.write_once(refunding("A", "10"))) == "done, again"
        assert said(await ledger.write_once(write)) == "done"
    assert len(server.changes.made) == 1


async def test_a_claim_that_lapsed_before_the_shop_was_asked_is_taken_over(
    database: Database,
) -> None:
    async with ledger_on(database, lease=-1.5) as (ledger, server):
        await ledger._claim(refunding("A", "10", call="1/1/c1"), 0, None, "")
        assert said(await ledger.write_once(refunding("A", "10", call="2/1/c1"))) == "done"
    assert len(server.changes.made) == 1


async def test_what_is_approved_is_done_once_what_stood_in_its_way_is_settled(
    database: Database,
) -> None:
    async with ledger_on(database, lease=-1.5) as (ledger, server):
        asked = await ledger.write_once(refunding("A", "110", call="1/1/c1"))
        assert said(asked) == "awaiting_approval"
        await ledger._claim(moving("A", AWAY, call="2/1/c1"), 0, None, "")  # and was killed
        assert said(await Approvals(ledger).decide(asked.key, approve=True, by="sam")) == "done"
    assert server.changes.made == [("# a", "refunds")]


async def test_a_cancelled_turn_leaves_what_it_asked_for_to_be_looked_up(
    database: Database,
) -> None:
    async with ledger_on(database, on_changes(held), timeout=60) as (ledger, server):
        write = refunding("A", "10", call="1/1/c1")
        task = asyncio.create_task(ledger.write_once(write))
        while not server.changes.made:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert said(await asyncio.wait_for(ledger.write_once(write), 5)) == "done"
    assert len(server.changes.made) == 1


@pytest.mark.parametrize(
    ("write", "kind", "words"),
    [
        (cancelling("B"), "refused", "left the house"),
        (refunding("B", "87.16"), "refused", "more than is refundable"),
        (refunding("A-17", "0.001"), "service_error", "The shop failed"),
        (cancelling("00123"), "not_found", "no order 00123"),
    ],
    ids=["left", "too much", "too fine", "foreign"],
)
async def test_what_the_shop_refuses_is_told_and_certain(
    write: Write, kind: str, words: str, database: Database
) -> None:
    async with ledger_on(database) as (ledger, server):
        outcome = await ledger.write_once(write)
    assert said(outcome) == kind
    assert words in str(outcome.error)
    assert server.changes.made == []
    assert await states(database) == ["failed"]


def _of_another(exchange: Exchange) -> None:
    exchange.send(201, {**exchange.content, "order_number": "B"})


def _strange(exchange: Exchange) -> None:
    exchange.send(201, {"ok": True})


@pytest.mark.parametrize("answer", [_of_another, _strange])
async def test_an_answer_that_does_not_fit_is_looked_up(
    answer: Callable[[Exchange], None], database: Database
) -> None:
    async with ledger_on(database, on_changes(then=answer)) as (ledger, server):
        outcome: Outcome = await ledger.write_once(refunding("A", "10"))
    assert said(outcome) == "done"
    assert len(server.changes.made) == 1


async def test_the_api_holds_a_key_to_one_request(database: Database) -> None:
    from tools.failures import ServiceError
    from tools.shop.protocol import Attempt

    async with ledger_on(database) as (ledger, server):
        shop: Any = ledger.tools.shop
        order = await shop.order("A-17")
        attempt = Attempt("0b8f4a3e-6d0c-5c1e-9f54-3a1f6b1c7d20")
        assert await shop.change_address(order, AWAY, attempt) == "done"
        assert await shop.change_address(order, AWAY, attempt) == "done"
        with pytest.raises(ServiceError):
            await shop.change_address(order, "elsewhere", attempt)
        with pytest.raises(ServiceError):
            await shop.cancel(order, "late", Attempt(""))
    assert len(server.changes.made) == 1
