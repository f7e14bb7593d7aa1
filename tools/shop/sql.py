"""The shop in the database. Each question is one statement on one short connection.

Changes are made in the transaction that they are given, on the order as it is in there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, RowMapping, Select, insert, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tools.database import Database
from tools.shop import rules
from tools.shop.models import Customer, Item, Order, Parcel
from tools.shop.protocol import Attempt, OrderNotFound, WriteState
from tools.shop.tables import customers, order_items, orders, parcels, refunds


@dataclass(frozen=True)
class SqlShop:
    """`WritableShop` on SQLAlchemy. Raises DatabaseProblem where the database cannot be asked."""

    database: Database
    outside: ClassVar[bool] = False

    async def customer(self, customer_id: str) -> Customer | None:
        rows = await self._rows(select(customers).where(customers.c.customer_id == customer_id))
        return Customer.model_validate(rows[0]) if rows else None

    async def order(self, order_id: str) -> Order | None:
        found = await self._orders(orders.c.order_id == order_id)
        return found[0] if found else None

    async def orders_of(self, customer_id: str) -> list[Order]:
        return await self._orders(orders.c.customer_id == customer_id)

    async def parcels(self, order: Order) -> list[Parcel]:
        of_order = parcels.c.order_id == order.order_id
        rows = await self._rows(select(parcels).where(of_order).order_by(parcels.c.position))
        return [Parcel.model_validate(row) for row in rows]

    async def all_orders(self) -> list[Order]:
        """Everybody's orders, oldest first: for the operator, never for a tool."""
        return await self._orders(true())

    async def cancel(self, order: Order, reason: str, attempt: Attempt) -> WriteState:
        return await _change(order, attempt, rules.may_cancel, status="cancelled")

    async def change_address(self, order: Order, address: str, attempt: Attempt) -> WriteState:
        return await _change(order, attempt, rules.may_change_address, address=address)

    async def refund(
        self, order: Order, amount: Decimal, currency: str, reason: str, attempt: Attempt
    ) -> WriteState:
        db, held = await _hold(order, attempt)
        rules.may_refund(held, amount, currency)
        row = {"key": attempt.key, "order_id": order.order_id, "at": datetime.now(UTC).isoformat()}
        sums = {"amount": amount, "currency": currency, "reason": reason}
        await db.execute(insert(refunds).values(row | sums))
        return "done"

    async def find(self, order: Order, attempt: Attempt) -> WriteState | None:
        """Never asked: what is made in a transaction is known by it."""
        return None

    async def _orders(self, condition: ColumnElement[bool]) -> list[Order]:
        return _orders_in(await self._rows(_select_orders(condition)))

    async def _rows(self, statement: Select[Any]) -> list[RowMapping]:
        async with self.database.connect() as connection:
            return list((await connection.execute(statement)).mappings())


async def _change(
    order: Order, attempt: Attempt, rule: Callable[[Order], None], **values: str
) -> WriteState:
    db, held = await _hold(order, attempt)
    rule(held)
    await db.execute(update(orders).where(orders.c.order_id == order.order_id).values(values))
    return "done"


async def _hold(order: Order, attempt: Attempt) -> tuple[AsyncConnection, Order]:
    """The transaction, and the order as it is in there; nobody else changes it until it ends."""
    if (db := attempt.db) is None:
        raise RuntimeError("The shop in the database is changed within a transaction.")
    this = orders.c.order_id == order.order_id
    await db.execute(select(orders.c.order_id).where(this).with_for_update())
    found = _orders_in(list((await db.execute(_select_orders(this))).mappings()))
    if not found or found[0].customer_id != order.customer_id:
        raise OrderNotFound(order.order_id)
    return db, found[0]


def _select_orders(condition: ColumnElement[bool]) -> Select[Any]:
    return (
        select(orders, order_items, refunds)
        .outerjoin(order_items)
        .outerjoin(refunds, refunds.c.order_id == orders.c.order_id)
        .where(condition)
        .order_by(orders.c.placed_on, orders.c.order_id, order_items.c.position)
    )


def _orders_in(rows: list[RowMapping]) -> list[Order]:
    by_order = groupby(rows, key=lambda row: row[orders.c.order_id])
    return [_order(list(of_order)) for _, of_order in by_order]


def _order(rows: list[RowMapping]) -> Order:
    """Each item stands beside each refund, so both are told apart by their keys."""
    items = {
        row[order_items.c.position]: {name: row[order_items.c[name]] for name in Item.model_fields}
        for row in rows
        if row[order_items.c.position] is not None
    }
    sums = {row[refunds.c.key]: row[refunds.c.amount] for row in rows if row[refunds.c.key]}
    fields = {column.name: rows[0][column] for column in orders.c}
    refunded = sum(sums.values(), Decimal(0))
    return Order.model_validate({**fields, "items": list(items.values()), "refunded": refunded})
