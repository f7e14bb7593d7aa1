"""Approvals by staff: what needs one, who may give it, when, and that it is carried out once."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import tables
from agent.approvals import Approvals, NotDecidable
from agent.ledger import Ledger
from tests.ledgers import (
    TOOLS,
    events,
    ledger_of,
    refunded,
    refunding,
    rows,
    said,
    states,
)
from tools.database import Database
from tools.policy.action_rules import ActionRule, Approval, action_rules
from tools.registry import TOOLS as READS
from tools.registry import WRITES
from tools.tool import BadDeclaration

pytestmark = pytest.mark.on_both("long")

LAPSED = {
    **action_rules(WRITES),
    "request_refund": ActionRule(
        confirm="customer", approve=Approval(role="refunds", hours=1e-9, above=None)
    ),
}


_SOON = "9999-01-01T00:00:00+00:00"


async def _waiting(ledger: Ledger, amount: str = "120", **more: Any) -> str:
    outcome = await ledger.write_once(refunding("A", amount, call="1/1/c1", **more))
    assert said(outcome) == "awaiting_approval"
    return outcome.key


async def test_above_the_amount_a_write_waits_for_staff_and_is_then_done(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    assert said(await ledger.write_once(refunding("B", "80"))) == "done"
    key = await _waiting(ledger)
    assert await refunded(database) == [("B", "80")]
    staff = Approvals(ledger)
    [request] = await staff.waiting()
    assert (request.key, request.role, request.arguments["amount"]) == (key, "refunds", "120")
    assert said(await staff.decide(key, approve=True, by="sam", role="refunds")) == "done"
    assert await refunded(database) == [("B", "80"), ("A", "120")]
    assert await staff.waiting() == []
    assert said(await ledger.write_once(refunding("A", "120", call="1/1/c1"))) == "done"
    assert said(await ledger.write_once(refunding("A", "120", call="2/1/c1"))) == "done, again"
    lines = [(row["event"], row["by"]) for row in await rows(database, tables.audit, "id")]
    assert lines[2:5] == [("waiting", "C-1001"), ("claimed", "sam"), ("done", "")]
    assert lines[5:] == [("told_again", "C-1001")] * 2


async def test_the_same_asked_again_waits_in_the_same_place(database: Database) -> None:
    ledger = ledger_of(database)
    key = await _waiting(ledger)
    again = await ledger.write_once(refunding("A", "120.00", call="2/1/c1"))
    assert (said(again), again.key) == ("awaiting_approval", key)
    assert len(await Approvals(ledger).waiting()) == 1


async def test_a_request_whose_tool_is_gone_can_only_be_refused(database: Database) -> None:
    ledger = ledger_of(database)
    key = await _waiting(ledger)
    staff = Approvals(replace(ledger, tools=replace(ledger.tools, by_name={})))
    with pytest.raises(NotDecidable, match="can only be refused"):
        await staff.decide(key, approve=True, by="sam")
    assert [request.key for request in await staff.waiting()] == [key]
    assert said(await staff.decide(key, approve=False, by="sam")) == "rejected"


async def test_small_refunds_of_one_order_add_up_to_what_needs_an_approval(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    told = await asyncio.gather(
        *(ledger.write_once(refunding("A", amount)) for amount in ("60", "30", "20.01"))
    )
    assert sorted(map(said, told)) == ["awaiting_approval", "done", "done"]
    assert said(await ledger.write_once(refunding("B", "60"))) == "done"


async def test_what_staff_refuses_is_not_done_and_can_be_asked_for_anew(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    key, staff = await _waiting(ledger), Approvals(ledger)
    refused = await staff.decide(key, approve=False, by="sam", reason="No photo of the damage.")
    assert said(refused) == "rejected"
    assert await ledger.write_once(refunding("A", "120", call="1/1/c1")) == refused
    assert said(await ledger.write_once(refunding("A", "120", call="2/1/c1"))) == (
        "awaiting_approval"
    )
    assert await refunded(database) == []
    [first, _] = await rows(database, tables.actions, "generation")
    assert (first["decided_by"], first["reason"]) == ("sam", "No photo of the damage.")


async def test_a_request_that_waited_too_long_lapses(database: Database) -> None:
    ledger = ledger_of(database, rules=LAPSED)
    key, staff = await _waiting(ledger), Approvals(ledger)
    with pytest.raises(NotDecidable, match="lapsed"):
        await staff.decide(key, approve=True, by="sam")
    assert await staff.waiting() == []
    assert said(await ledger.write_once(refunding("A", "120", call="1/1/c1"))) == "not_executed"
    assert await events(database) == ["waiting", "expired"]


@pytest.mark.parametrize(
    ("by", "role", "sentence"),
    [
        ("C-1001", None, "never by its customer"),
        ("", None, "by a member of staff"),
        ("sam", "shipping", "Only staff with the role 'refunds'"),
        ("sam", "", "Only staff with the role 'refunds'"),
    ],
)
async def test_only_staff_with_the_role_decides(
    by: str, role: str | None, sentence: str, database: Database
) -> None:
    ledger = ledger_of(database)
    key = await _waiting(ledger)
    for approve in (True, False):
        with pytest.raises(NotDecidable, match=sentence):
            await Approvals(ledger).decide(key, approve=approve, by=by, role=role)
    assert await states(database) == ["waiting"]


async def test_a_request_is_decided_once(database: Database) -> None:
    ledger = ledger_of(database)
    key, staff = await _waiting(ledger), Approvals(ledger)
    decisions = await asyncio.gather(
        *(staff.decide(key, approve=n % 2 == 0, by=f"staff-{n}") for n in range(6)),
        return_exceptions=True,
    )
    assert sum(not isinstance(each, NotDecidable) for each in decisions) == 1
    assert len(await refunded(database)) <= 1
    for approve in (True, False):
        with pytest.raises(NotDecidable, match="was decided by staff-"):
            await staff.decide(key, approve=approve, by="kim")
    with pytest.raises(NotDecidable, match="no such request"):
        await staff.decide("nothing", approve=True, by="kim")


async def test_what_needed_no_approval_is_not_decided(database: Database) -> None:
    ledger = ledger_of(database)
    outcome = await ledger.write_once(refunding("A", "10"))
    with pytest.raises(NotDecidable, match="it is done"):
        await Approvals(ledger).decide(outcome.key, approve=False, by="sam")


async def test_the_rules_of_the_shop_hold_when_it_is_approved(database: Database) -> None:
    ledger = ledger_of(database)
    key, staff = await _waiting(ledger), Approvals(ledger)
    other = await _waiting(ledger, "130")
    assert said(await staff.decide(key, approve=True, by="sam")) == "done"
    outcome = await staff.decide(other, approve=True, by="sam")
    assert outcome.error == {
        "kind": "refused",
        "message": "No more than 19.00 USD of order A is refundable.",
    }


async def test_an_approval_that_was_broken_off_is_still_listed_and_can_be_refused(
    database: Database,
) -> None:
    ledger = ledger_of(database)
    key = await _waiting(ledger)
    record = await ledger.record(key)
    assert record is not None
    claimed = await ledger.change(record, "sam", state="claimed", decided_by="sam", until=_SOON)
    staff = Approvals(ledger)
    assert await staff.waiting() == []
    with pytest.raises(NotDecidable, match="is being carried out"):
        await staff.decide(key, approve=False, by="kim")
    await ledger.change(claimed, until="2000-01-01T00:00:00+00:00")  # sam's process was killed
    assert [each.key for each in await staff.waiting()] == [key]
    assert said(await staff.decide(key, approve=False, by="kim")) == "rejected"
    assert await staff.waiting() == []
    assert await refunded(database) == []


async def test_an_approval_that_was_broken_off_can_be_given_again(database: Database) -> None:
    ledger = ledger_of(database, lease=-1)
    key, staff = await _waiting(ledger), Approvals(ledger)
    record = await ledger.record(key)
    assert record is not None
    await ledger._claim(ledger.tools.write_of(record), 0, record, "sam")  # and here it was killed
    assert said(await staff.decide(key, approve=True, by="kim")) == "done"
    assert len(await refunded(database)) == 1


RULES = """
[cancel_order]
confirm = "customer"
[change_address]
confirm = "customer"
[request_refund]
confirm = "customer"
[escalate_to_human]
confirm = "nobody"
"""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text + "[get_order]\nconfirm = 'nobody'\n", "no write tool 'get_order'"),
        (lambda text: text + "[cancel_ordr]\nconfirm = 'nobody'\n", "no write tool 'cancel_ordr'"),
        (lambda text: text.replace("[change_address]", "[x]"), "no write tool 'x'"),
        (lambda text: text.partition("[escalate")[0], "'escalate_to_human' has no section"),
        (lambda text: text.replace('"nobody"', '"no"'), "escalate_to_human.confirm"),
        (lambda text: text.replace("confirm =", "confrim ="), "cancel_order.confirm"),
        (lambda text: text + "aprove = {}\n", "escalate_to_human.aprove"),
        (
            lambda text: text + "approve = {role = 'x', hours = 1, above = {USD = '1'}}\n",
            "'escalate_to_human' takes no amount",
        ),
        (lambda text: text + "approve = {role = 'x'}\n", "approve.hours"),
        (lambda text: text + "approve = {role = '', hours = 1}\n", "approve.role"),
        (lambda text: text + "approve = {role = 'x', hours = inf}\n", "approve.hours"),
        (lambda text: text + "approve = {role = 'x', hours = 1e9}\n", "approve.hours"),
        (lambda text: text + "[[", "cannot be read"),
    ],
)
def test_a_policy_that_leaves_anything_open_is_refused(
    change: Any, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "actions.toml"
    file.write_text(RULES)
    assert set(action_rules([*READS, *WRITES], file)) == set(TOOLS)
    file.write_text(change(RULES))
    with pytest.raises(BadDeclaration, match=r"^The policy file actions\.toml cannot be used") as e:
        action_rules([*READS, *WRITES], file)
    assert sentence in str(e.value)


def test_a_policy_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDeclaration, match="cannot be read"):
        action_rules(WRITES, tmp_path / "actions.toml")


@pytest.mark.parametrize(
    ("amount", "currency", "needed"),
    [("100", "USD", False), ("100.01", "USD", True), ("15000", "JPY", False), ("1", "CHF", True)],
)
def test_a_currency_that_the_policy_does_not_name_is_approved_from_the_first_cent(
    amount: str, currency: str, needed: bool
) -> None:
    asked = {"order_id": "A", "amount": amount, "currency": currency, "reason": "late"}
    arguments = dict(TOOLS["request_refund"].validate(json.dumps(asked)))
    rule = action_rules(WRITES)["request_refund"]
    assert rule.asks_customer
    assert (rule.approval(arguments) is not None) == needed
