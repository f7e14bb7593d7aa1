"""The ledger on the demo shop, as tests write through it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from agent import tables
from agent.desk import SqlDesk
from agent.ledger import Ledger
from agent.ledger_records import Outcome, Write
from agent.store import open_database
from agent.write_tools import WriteTools
from tools.database import Database
from tools.policy.action_rules import action_rules
from tools.registry import WRITES
from tools.shop.sql import SqlShop
from tools.shop.tables import refunds
from tools.tool import Tool

DEMO_CUSTOMER = "C-1001"
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in WRITES}


def ledger_of(database: Database, **options: Any) -> Ledger:
    """A ledger with the rules of the policy, on the shop in the database."""
    chosen = {"shop": SqlShop(database), "desk": SqlDesk(database), "timeout": 10, **options}
    parts = {name: chosen.pop(name) for name in ("shop", "desk", "timeout")}
    return Ledger(database, WriteTools(TOOLS, **parts), **{"rules": action_rules(WRITES), **chosen})


def ledger_at(url: str, **options: Any) -> Ledger:
    """The same for another process."""
    return ledger_of(open_database(url), **options)


def write_of(
    tool: str | Tool,
    arguments: Mapping[str, Any] | str,
    *,
    customer: str = DEMO_CUSTOMER,
    thread: str = "thread-1",
    call: str = "",
    **more: Any,
) -> Write:
    """A call as the model makes it: its arguments are read by the tool's schema."""
    chosen = TOOLS[tool] if isinstance(tool, str) else tool
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Write(chosen, dict(chosen.validate(text)), customer, thread, call, **more)


def cancelling(order_id: str, **more: Any) -> Write:
    return write_of("cancel_order", {"order_id": order_id, "reason": "no longer needed"}, **more)


def moving(order_id: str, address: str, **more: Any) -> Write:
    return write_of("change_address", {"order_id": order_id, "address": address}, **more)


def refunding(order_id: str, amount: str, **more: Any) -> Write:
    asked = {"order_id": order_id, "amount": amount, "currency": "USD", "reason": "arrived late"}
    return write_of("request_refund", asked, **more)


def escalating(**more: Any) -> Write:
    return write_of("escalate_to_human", {"summary": "Wants to talk about a gift."}, **more)


def said(outcome: Outcome | None) -> Any:
    """An outcome in short: its data without `repeated` as a state, or the kind of its error."""
    assert outcome is not None
    if outcome.data is not None:
        return outcome.data["state"] + ", again" * outcome.data["repeated"]
    assert outcome.error is not None
    return outcome.error["kind"]


async def rows(database: Database, table: Any, *order: Any) -> Sequence[Mapping[str, Any]]:
    async with database.connect() as db:
        found = await db.execute(select(table).order_by(*order))
        return [dict(row) for row in found.mappings()]


async def refunds_of(database: Database, order_id: str) -> list[Mapping[str, Any]]:
    every = await rows(database, refunds)
    return [row for row in every if row["order_id"] == order_id]


async def states(database: Database) -> list[str]:
    """The states of all records, in the order in which they were asked for."""
    return [row["state"] for row in await rows(database, tables.actions, "asked_at", "key")]


async def events(database: Database) -> list[str]:
    return [row["event"] for row in await rows(database, tables.audit, "id")]


async def refunded(database: Database) -> list[tuple[str, str]]:
    found = await rows(database, refunds, "at")
    return [(row["order_id"], str(row["amount"])) for row in found]
