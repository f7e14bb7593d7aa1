"""What is true: each order's facts, taken from a case's database by SQL and by nothing else."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

# The facts that a case may ask for, and where each of them stands.
FIELDS = {
    **{name: ("orders", name) for name in ("status", "placed_on", "total", "address", "note")},
    "items": ("order_items", "name"),
    "quantities": ("order_items", "quantity"),
    "prices": ("order_items", "price"),
    "refunds": ("refunds", "amount"),
    **{name: ("parcels", name) for name in ("carrier", "tracking_number", "promised_date", "days")},
}
IN_ORDER = {"orders": "order_id", "order_items": "position", "parcels": "position", "refunds": "at"}
MONEY, DAYS = ("total", "price", "amount"), ("placed_on", "promised_date")

Row = dict[str, Any]


class Money(NamedTuple):
    amount: Decimal
    currency: str

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"

    @property
    def written(self) -> str:
        """The one way to write it that is compared: 12.50 EUR is 12.5 EUR."""
        return f"{self.amount.normalize():f} {self.currency}"


Value = str | int | date | Money


@dataclass(frozen=True)
class OrderFacts:
    """One order: its owner's customer id, and the values of each field, one a parcel or item."""

    owner: str
    values: Mapping[str, tuple[Value, ...]]

    @property
    def due(self) -> date:
        """When the last parcel is promised for; the end of time where none is."""
        days = (day for day in self.values["promised_date"] if isinstance(day, date))
        return max(days, default=date.max)


@dataclass(frozen=True, eq=False)
class Truth:
    """tickets: of the conversations that wait for a person."""

    customers: frozenset[str]
    orders: Mapping[str, OrderFacts]
    tickets: tuple[str, ...] = ()


def truth_of(database: Path) -> Truth:
    """All that a SQLite file of a shop says now."""
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        rows = {table: _by_order(connection, table) for table in IN_ORDER}
        people = connection.execute("SELECT customer_id FROM customers")
        waiting = connection.execute("SELECT ticket FROM tickets WHERE closed_at IS NULL")
        return Truth(
            customers=frozenset(id_ for (id_,) in people),
            orders={id_: _facts(order, rows) for id_, [order] in rows["orders"].items()},
            tickets=tuple(ticket for (ticket,) in waiting),
        )


def _by_order(connection: sqlite3.Connection, table: str) -> dict[str, list[Row]]:
    by_order: defaultdict[str, list[Row]] = defaultdict(list)
    for row in connection.execute(f"SELECT * FROM {table} ORDER BY {IN_ORDER[table]}"):
        by_order[row["order_id"]].append(dict(row))
    return by_order


def _facts(order: Row, rows: Mapping[str, Mapping[str, list[Row]]]) -> OrderFacts:
    values = {}
    for field, (table, column) in FIELDS.items():
        own = [order | row for row in rows[table].get(order["order_id"], ())]
        values[field] = tuple(_value(column, row) for row in own if row[column] != "")
    return OrderFacts(order["customer_id"], values)


def _value(column: str, row: Row) -> Value:
    value: Any = row[column]
    if column in MONEY:
        return Money(Decimal(value), row["currency"])
    return date.fromisoformat(value) if column in DAYS else value


def changes(before: Truth, after: Truth) -> dict[str, dict[str, Any]]:
    """What of each order is not as it was, by field; refunds as they would be written in a case."""
    changed: dict[str, dict[str, Any]] = {}
    for order_id, order in after.orders.items():
        known = before.orders.get(order_id, OrderFacts("", {})).values
        for field in (
            field for field, values in order.values.items() if values != known.get(field)
        ):
            changed.setdefault(order_id, {})[field] = list(map(_written, order.values[field]))
    return changed


def _written(value: Value) -> str:
    return value.written if isinstance(value, Money) else str(value)
