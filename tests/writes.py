"""Calls that write, as scripted models make them, and what the shop says afterwards."""

from typing import Any

from tests.ledgers import refunds_of
from tests.scripted import Scripted, answering, calling
from tools.database import Database
from tools.shop.sql import SqlShop

Call = tuple[str, str, dict[str, Any]]


CANCEL: Call = ("c1", "cancel_order", {"order_id": "A-17", "reason": "too late"})


READ: Call = ("c3", "get_order", {"order_id": "A"})


def refund(
    id_: str, order_id: str = "B", amount: str = "10", currency: str = "USD", reason: str = "broken"
) -> Call:
    about = {"order_id": order_id, "amount": amount, "currency": currency, "reason": reason}
    return (id_, "request_refund", about)


def script(*calls: Call, answers: int = 3) -> Scripted:
    return Scripted(calling(*calls), *[answering() for _ in range(answers)])


async def effects(database: Database) -> tuple[str, Any]:
    """What the shop says: the state of order A-17, the amounts refunded for order B."""
    order = await SqlShop(database).order("A-17")
    assert order is not None
    return order.status, [float(row["amount"]) for row in await refunds_of(database, "B")]
