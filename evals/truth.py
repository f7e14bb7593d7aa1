"""What is true: each order's facts, taken from a case's database by SQL and by nothing else."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, NullPool, Table, create_engine, select
from sqlalchemy import RowMapping as Row

from tools.shop.tables import customers, order_items, orders, parcels

# The facts that a case may ask for, and where each of them stands.
FIELDS: dict[str, tuple[Table, str]] = {
    "status": (orders, "status"),
    "placed_on": (orders, "placed_on"),
    "total": (orders, "total"),
    "address": (orders, "address"),
    "note": (orders, "note"),
    "items": (order_items, "name"),
    "quantities": (order_items, "quantity"),
    "prices": (order_items, "price"),
    "carrier": (parcels, "carrier"),
    "tracking_number": (parcels, "tracking_number"),
    "promised_date": (parcels, "promised_date"),
    "days": (parcels, "days"),
}


class Money(NamedTuple):
    amount: Decimal
    currency: str


Value = str | int | date | Money


@dataclass(frozen=True)
class OrderFacts:
    """One order: its owner's customer id, and the values of each field, one a parcel or item."""

    owner: str
    values: Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True)
class Truth:
    customers: frozenset[str]
    orders: Mapping[str, OrderFacts]


@cache
def truth_of(database: Path) -> Truth:
    """All that a SQLite file of a shop says. A file is read once: after its case is over."""
    engine = create_engine(f"sqlite:///{database}", poolclass=NullPool)
    with engine.connect() as connection:
        rows = {table: _by_order(connection, table) for table in (orders, order_items, parcels)}
        return Truth(
            customers=frozenset(connection.scalars(select(customers.c.customer_id))),
            orders={
                order_id: OrderFacts(own[0]["customer_id"], _values(order_id, rows))
                for order_id, own in rows[orders].items()
            },
        )


def _by_order(connection: Connection, table: Table) -> dict[str, list[Row]]:
    by_order = defaultdict(list)
    for row in connection.execute(select(table).order_by(*table.primary_key)).mappings():
        by_order[row["order_id"]].append(row)
    return by_order


def _values(order_id: str, rows: Mapping[Table, Mapping[str, list[Row]]]) -> Mapping[str, Any]:
    [order] = rows[orders][order_id]
    return {
        field: tuple(
            Money(row[column], order["currency"]) if column in ("total", "price") else row[column]
            for row in rows[table].get(order_id, ())
            if row[column] != ""
        )
        for field, (table, column) in FIELDS.items()
    }
