"""The shop in the database. Each question is one statement on one short connection."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, select, true

from tools.database import Database
from tools.shop.models import Customer, Item, Order, Parcel
from tools.shop.tables import customers, order_items, orders, parcels


@dataclass(frozen=True)
class SqlShop:
    """`Shop` on SQLAlchemy. Raises DatabaseProblem where the database cannot be asked."""

    database: Database

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

    async def _orders(self, condition: ColumnElement[bool]) -> list[Order]:
        statement = (
            select(orders, *(c.label(f"item_{c.name}") for c in order_items.c))
            .outerjoin(order_items)
            .where(condition)
            .order_by(orders.c.placed_on, orders.c.order_id, order_items.c.position)
        )
        by_order = groupby(await self._rows(statement), key=lambda row: row["order_id"])
        return [_order(list(rows)) for _, rows in by_order]

    async def _rows(self, statement: Select[Any]) -> list[RowMapping]:
        async with self.database.connect() as connection:
            return list((await connection.execute(statement)).mappings())


def _order(rows: list[RowMapping]) -> Order:
    names = Item.model_fields
    items = [{name: row[f"item_{name}"] for name in names} for row in rows if row["item_order_id"]]
    return Order.model_validate({**rows[0], "items": items})
