"""The ledger on the shop in the database: each action once, whatever is asked again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from agent import tables
from agent.calls import ToolError
from agent.ledger_records import Write
from tests.ledgers import (
    TOOLS,
    cancelling,
    escalating,
    events,
    ledger_of,
    moving,
    refunded,
    refunding,
    rows,
    said,
    states,
    write_of,
)
from tools.database import CONNECTIONS, Database
from tools.shop.sql import SqlShop
from tools.shop.tables import orders
from tools.tool import Arguments, Context, Tool

pytestmark = pytest.mark.on_both

HOME = "418 Juniper Street, Portland, OR 97205, US"
AWAY = "9 Mill Lane, Salem, OR 97301, US"


async def test_a_write_is_done_once_and_its_receipt_is_told_again(database: Database) -> None:
    ledger = ledger_of(database)
    first = await ledger.write_once(cancelling("A-17", call="1/1/c1"))
    assert first.data == {"state": "done", "repeated": False, "order_id": "A-17"}
    again = await ledger.write_once(cancelling("A-17", call="2/1/c1"))
    assert again.data == {"state": "done", "repeated": True, "order_id": "A-17"}
    assert again.key == first.key
    order = await SqlShop(database).order("A-17")
    assert order is not None
    assert order.status == "cancelled"
    assert await events(database) == ["claimed", "done", "told_again"]


async def test_the_same_call_told_again_gets_its_own_receipt(database: Database) -> None:
    ledger = ledger_of(database)
    write = cancelling("A-17", call="1/1/c1")
    assert await ledger.write_once(write) == await ledger.write_once(write)
    assert said(await ledger.look_up(write)) == "done"
    assert await ledger.look_up(cancelling("B-21")) is None


@pytest.mark.parametrize(
    "arguments",
    [
        '{"order_id": "A", "amount": "10", "currency": "USD", "reason": "late"}',
        '{"reason": "late", "currency": "USD", "amount": "10", "order_id": "A"}',
        '{"order_id": "A", "amount": "10.00", "currency": "USD", "reason": "late"}',
        '{"order_id": "A", "amount": 10, "currency": "USD", "reason": "late"}',
        '{"order_id": "A", "amount": 10.0, "currency": "USD", "reason": "late"}',
        '{"order_id": " #a", "amount": "10", "currency": "usd", "reason": "It came  broken."}',
    ],
)
async def test_the_same_action_written_differently_has_one_effect(
    arguments: str, database: Database
) -> None:
    ledger = ledger_of(database)
    first = refunding("A", "10.0", call="1/1/c1")
    other = write_of("request_refund", arguments, call="1/1/c2")
    told = await asyncio.gather(ledger.write_once(first), ledger.write_once(other))
    assert sorted(map(said, told)) == ["done", "done, again"]
    assert await refunded(database) == [("A", "10.0")] or await refunded(database) == [
        ("A", str(other.arguments["amount"]))
    ]


async def test_another_amount_order_or_customer_is_another_action(database: Database) -> None:
    ledger = ledger_of(database)
    for write in (refunding("A", "10"), refunding("A", "10.01"), refunding("B", "10")):
        assert said(await ledger.write_once(write)) == "done"
    assert len(await refunded(database)) == 3
    assert said(await ledger.write_once(refunding("A", "10", customer="C-1002"))) == "not_found"


async def test_an_address_that_was_changed_back_is_changed_again(database: Database) -> None:
    ledger = ledger_of(database)
    told = [
        said(await ledger.write_once(moving("A-17", address, call=f"{turn}/1/c1")))
        for turn, address in enumerate([AWAY, AWAY, HOME, AWAY, AWAY], 1)
    ]
    assert told == ["done", "done, again", "done", "done", "done, again"]
    assert said(await ledger.write_once(moving("A-17", AWAY, call="1/1/c1"))) == "done"
    assert (await events(database)).count("done") == 3


async def test_again_on_purpose_is_done_once_more_for_each_receipt_named(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    first = await ledger.write_once(refunding("A", "10", call="1/1/c1"))
    once_more = refunding("A", "10", call="2/1/c1", again=first.key)
    second = await ledger.write_once(once_more)
    assert said(second) == "done"
    assert said(await ledger.write_once(once_more)) == "done"
    other_call = replace(once_more, call="2/1/c2")
    assert said(await ledger.write_once(other_call)) == "done, again"
    assert second.key != first.key
    assert len(await refunded(database)) == 2


async def test_once_more_comes_to_an_end_where_others_failed_at_it_before(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    first = await ledger.write_once(refunding("B", "45", call="1/1/c1"))
    for turn in (2, 3, 4):
        once_more = refunding("B", "45", call=f"{turn}/1/c1", again=first.key)
        async with asyncio.timeout(60):
            assert said(await ledger.write_once(once_more)) == "refused"
    assert await refunded(database) == [("B", "45")]


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (cancelling("B"), "Order B is shipped, so it cannot be cancelled."),
        (cancelling("A"), "Order A is in transit, so it cannot be cancelled."),
        (moving("B", AWAY), "Order B is shipped, so its address cannot be changed."),
        (refunding("B", "87.16"), "No more than 87.15 USD of order B is refundable."),
        (refunding("B", "0.001"), "0.001 USD is no amount that can be paid out."),
        (
            write_of(
                "request_refund",
                {"order_id": "B", "amount": "1", "currency": "EUR", "reason": "late"},
            ),
            "Order B was paid in USD, so it cannot be refunded in EUR.",
        ),
    ],
    ids=lambda value: value.tool.name if isinstance(value, Write) else "",
)
async def test_a_rule_of_the_shop_refuses_before_and_while_it_is_done(
    write: Write, sentence: str, database: Database
) -> None:
    ledger = ledger_of(database)
    problem = ToolError(kind="refused", message=sentence)
    assert await ledger.check(write) == problem
    for _ in range(2):
        assert (await ledger.write_once(replace(write, call="1/1/c1"))).error == problem
        assert await states(database) == ["failed"]
    assert await refunded(database) == []


async def test_refunds_add_up_to_what_was_paid_and_no_more(database: Database) -> None:
    ledger = ledger_of(database)
    told = [said(await ledger.write_once(refunding("B", amount))) for amount in ("50", "37.15")]
    assert told == ["done", "done"]
    assert (await ledger.check(refunding("B", "0.01"))) == {
        "kind": "refused",
        "message": "No more than 0.00 USD of order B is refundable.",
    }
    order = await SqlShop(database).order("B")
    assert order is not None
    assert str(order.refunded) == "87.15"
    assert len(order.items) == 2


async def test_somebody_elses_order_is_not_found(database: Database) -> None:
    ledger = ledger_of(database)
    foreign, unknown = cancelling("00123"), cancelling("NO-SUCH")
    told = [(await ledger.write_once(each)).error for each in (foreign, unknown)]
    assert [error and error["kind"] for error in told] == ["not_found", "not_found"]
    assert str(told[0]).replace("00123", "ID") == str(told[1]).replace("NO-SUCH", "ID")


def _changed(tool: Tool, run: Callable[..., Awaitable[Any]]) -> Tool:
    async def wrapped(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
        return await run(tool, ctx, arguments, call_id)

    return replace(tool, run=wrapped)


async def _then_fails(tool: Tool, *asked: Any) -> Any:
    await tool.run(*asked)
    raise ValueError("internal")


async def _then_hangs(tool: Tool, *asked: Any) -> Any:
    await tool.run(*asked)
    await asyncio.sleep(60)


async def _about_another(tool: Tool, *asked: Any) -> Any:
    return {**await tool.run(*asked), "order_id": "B"}


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (_then_fails, "service_error"),
        (_then_hangs, "timeout"),
        (_about_another, "wrong_subject"),
    ],
)
async def test_a_write_that_fails_after_its_effect_leaves_none(
    run: Callable[..., Awaitable[Any]], kind: str, database: Database
) -> None:
    broken = _changed(TOOLS["request_refund"], run)
    ledger = ledger_of(database, timeout=0.2)
    write = replace(refunding("A", "10"), tool=broken)
    outcome = await ledger.write_once(write)
    assert said(outcome) == kind
    assert "internal" not in str(outcome)
    assert await refunded(database) == []
    assert said(await ledger.write_once(refunding("A", "10"))) == "done"
    assert await states(database) == ["failed", "done"]


async def test_a_write_that_is_cancelled_leaves_nothing_and_nobody_waits_for_it(
    database: Database,
) -> None:
    begun = asyncio.Event()

    async def tell_and_hang(tool: Tool, *asked: Any) -> Any:
        await tool.run(*asked)
        begun.set()
        await asyncio.sleep(60)

    hanging = _changed(TOOLS["request_refund"], tell_and_hang)
    ledger = ledger_of(database, lease=1000)
    write = refunding("A", "10", call="1/1/c1")
    task = asyncio.create_task(ledger.write_once(replace(write, tool=hanging)))
    await asyncio.wait_for(begun.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await refunded(database) == []
    assert said(await asyncio.wait_for(ledger.write_once(write), 10)) == "done"
    assert await events(database) == ["claimed", "failed", "claimed", "done"]


async def test_an_older_turn_of_the_thread_writes_no_more(database: Database) -> None:
    ledger = ledger_of(database)
    await ledger.begin_turn("thread-1", "turn 1")
    await ledger.begin_turn("thread-1", "turn 2")
    assert said(await ledger.write_once(cancelling("A-17", fence="turn 1"))) == "not_executed"
    assert said(await ledger.write_once(cancelling("A-17", fence="turn 2"))) == "done"
    assert await events(database) == ["claimed", "done"]


async def test_a_thread_whose_turn_was_never_begun_writes_nothing(database: Database) -> None:
    ledger = ledger_of(database)
    assert said(await ledger.write_once(cancelling("A-17", fence="any"))) == "not_executed"
    assert await states(database) == []


async def test_a_turn_that_goes_stale_after_its_claim_has_no_effect(database: Database) -> None:
    ledger = ledger_of(database)
    await ledger.begin_turn("thread-1", "turn 1")
    stale = cancelling("A-17", call="1/1/c1", fence="turn 1")
    record = await ledger._claim(stale, 0, None, "")
    await ledger.begin_turn("thread-1", "turn 2")
    assert (await ledger._execute(stale, record)).state == "failed"
    newer = cancelling("A-17", call="2/1/c1", fence="turn 2")
    assert said(await ledger.write_once(newer)) == "done"
    assert said(await ledger.write_once(stale)) == "done, again"


async def test_a_claim_that_was_taken_over_has_no_effect(database: Database) -> None:
    ledger = ledger_of(database, lease=-1)
    slow = refunding("A", "10", call="1/1/c1")
    record = await ledger._claim(slow, 0, None, "")
    assert said(await ledger.write_once(refunding("A", "10", call="2/1/c1"))) == "done"
    assert await ledger.carry_out(slow, 0, record) is None
    assert said(await ledger.write_once(slow)) == "done, again"
    assert len(await refunded(database)) == 1


async def test_a_conversation_is_handed_over_once_and_can_be_given_back(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    desk: Any = ledger.tools.desk
    first = await ledger.write_once(escalating(call="1/1/c1"))
    assert first.data is not None
    assert await desk.has("thread-1")
    again = await ledger.write_once(escalating(call="1/1/c2"))
    assert (said(again), again.key) == ("done, again", first.key)
    elsewhere = await ledger.write_once(escalating(thread="thread-2"))
    assert said(elsewhere) == "done"
    assert said(await ledger.write_once(escalating(call="1/1/c3"))) == "done, again"
    tickets = await rows(database, tables.tickets, "opened_at")
    assert [row["thread_id"] for row in tickets] == ["thread-1", "thread-2"]
    assert first.data["ticket"] == tickets[0]["ticket"]
    assert await desk.give_back("thread-1", "sam")
    assert not await desk.give_back("thread-1", "sam")
    assert not await desk.has("thread-1")
    assert said(await ledger.write_once(escalating(call="2/1/c1"))) == "done"
    assert len(await rows(database, tables.tickets)) == 3


async def test_tickets_wait_to_be_delivered(database: Database) -> None:
    ledger = ledger_of(database)
    desk: Any = ledger.tools.desk
    await ledger.write_once(escalating())
    [ticket] = await desk.undelivered()
    assert ticket["summary"] == "Wants to talk about a gift."
    await desk.delivered(ticket["ticket"])
    assert await desk.undelivered() == []


async def test_a_conversation_that_is_not_kept_cannot_be_handed_over(database: Database) -> None:
    assert said(await ledger_of(database).write_once(escalating(thread=""))) == "refused"
    assert said(await ledger_of(database, desk=None).write_once(escalating())) == "refused"


async def test_more_writes_at_once_than_a_server_gives_connections_are_all_carried_out(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    writes = [
        write_of(
            "request_refund",
            {"order_id": order["order_id"], "amount": amount, "currency": "USD", "reason": "late"},
            customer=order["customer_id"],
        )
        for order in await rows(database, orders)
        if order["status"] != "pending" and order["currency"] == "USD"
        for amount in ("0.01", "0.02", "0.03", "0.04")
    ]
    assert len(writes) > 2 * CONNECTIONS
    told = await asyncio.gather(*map(ledger.write_once, writes))
    assert set(map(said, told)) == {"done"}


async def test_the_audit_trail_says_who_did_what_about_what(database: Database) -> None:
    outcome = await ledger_of(database).write_once(cancelling("A-17", call="1/1/c1"))
    for line, event in zip(
        await rows(database, tables.audit, "id"), ("claimed", "done"), strict=True
    ):
        assert line["event"] == event
        assert (line["thread_id"], line["customer_id"]) == ("thread-1", "C-1001")
        assert (line["tool"], line["subject"], line["key"]) == ("cancel_order", "A-17", outcome.key)
