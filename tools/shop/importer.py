"""Loads a shop's own file into the database, all or nothing.

    shop_file = read_shop_file(Path("orders.csv"))     # reads and checks; touches no database
    report = await import_shop(database, shop_file)    # one transaction

Both raise ImportProblem, which names every bad row at once. `records` describes the two formats.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from tools.database import Database
from tools.shop.checks import check
from tools.shop.models import Customer, Item, Order, Parcel
from tools.shop.records import Records, Unreadable, read_csv, read_json
from tools.shop.tables import customers, order_items, orders, parcels

SHOWN = 20


class ImportProblem(Exception):
    """The file was not imported, nothing was written; the message has a line for each problem."""

    def __init__(self, name: str, problems: list[str]) -> None:
        shown = problems[:SHOWN]
        if len(problems) > SHOWN:
            shown.append(f"and {len(problems) - SHOWN} more")
        lines = [f"{name} was not imported, and nothing was written:", *shown]
        super().__init__("\n  ".join(lines))


class NotEmpty(ImportProblem):
    """An empty shop was to begin where orders are."""


@dataclass(frozen=True)
class ShopFile:
    """A file's checked content. In customers a blank field means: not said, keep what is known."""

    name: str
    customers: tuple[Customer, ...]
    orders: tuple[Order, ...]
    parcels: tuple[Parcel, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class ImportReport:
    """What was written. `replaced` orders were there before; `unknown` fields were passed over."""

    customers: int
    orders: int
    items: int
    parcels: int
    replaced: int
    unknown: tuple[str, ...]


def read_shop_file(path: Path) -> ShopFile:
    """Reads and checks a JSON or CSV file (by its ending, else by how it begins), UTF-8.

    Raises ImportProblem where it cannot be read or anything in it is wrong.
    """
    try:
        text = _text(path)
        is_json = path.suffix.lower() != ".csv" and (
            path.suffix.lower() == ".json" or text.lstrip()[:1] in ("{", "[")
        )
        records = read_json(text) if is_json else read_csv(text)
    except Unreadable as error:
        raise ImportProblem(path.name, [str(error)]) from error
    return _checked(path.name, records)


async def import_shop(
    database: Database, shop_file: ShopFile, *, empty: bool = False
) -> ImportReport:
    """Writes the file's content; an order that the same customer has already is replaced.

    `empty` begins a new database without the demo shop and is refused where orders are. Raises
    ImportProblem, and DatabaseProblem where the database cannot be written.
    """
    await database.prepare(demo=not empty)
    async with database.begin() as connection:
        return await connection.run_sync(write_shop, shop_file, empty)


async def has_orders(database: Database) -> bool:
    """Whether there is any order."""
    async with database.connect() as connection:
        return await connection.run_sync(_any_order)


def write_shop(connection: Connection, shop_file: ShopFile, empty: bool = False) -> ImportReport:
    """`import_shop` within a transaction that is open already."""
    if empty and _any_order(connection):
        raise NotEmpty(shop_file.name, ["The shop has orders already; it is not empty."])
    rows = connection.execute(select(orders.c.order_id, orders.c.customer_id))
    owners = {row.order_id: row.customer_id for row in rows}
    taken = [o for o in shop_file.orders if owners.get(o.order_id, o.customer_id) != o.customer_id]
    if taken:
        belongs = "belongs to another customer in the database"
        raise ImportProblem(shop_file.name, [f"order {o.order_id} {belongs}" for o in taken])
    _write_customers(connection, shop_file.customers)
    replaced = [{"id": o.order_id} for o in shop_file.orders if o.order_id in owners]
    if replaced:
        connection.execute(delete(orders).where(orders.c.order_id == bindparam("id")), replaced)
    _insert(connection, orders, (o.model_dump(exclude={"items"}) for o in shop_file.orders))
    items = [row for order in shop_file.orders for row in _numbered(order.order_id, order.items)]
    _insert(connection, order_items, items)
    _insert(connection, parcels, _numbered_parcels(shop_file.parcels))
    return ImportReport(
        customers=len(shop_file.customers),
        orders=len(shop_file.orders),
        items=len(items),
        parcels=len(shop_file.parcels),
        replaced=len(replaced),
        unknown=shop_file.unknown,
    )


def _any_order(connection: Connection) -> bool:
    return connection.scalar(select(orders.c.order_id).limit(1)) is not None


def _write_customers(connection: Connection, given: Iterable[Customer]) -> None:
    rows = connection.execute(select(customers)).mappings()
    known = {row["customer_id"]: dict(row) for row in rows}
    said = [{k: v for k, v in customer.model_dump().items() if v} for customer in given]
    new = [row for row in said if row["customer_id"] not in known]
    _insert(connection, customers, ({"name": "", "email": "", "locale": "en"} | row for row in new))
    for row in said:
        before = known.get(row["customer_id"])
        if before is not None and before | row != before:
            mine = customers.c.customer_id == row["customer_id"]
            connection.execute(update(customers).where(mine).values(row))


def _numbered(order_id: str, items: Iterable[Item]) -> list[dict[str, Any]]:
    return [
        {"order_id": order_id, "position": n, **item.model_dump()}
        for n, item in enumerate(items, start=1)
    ]


def _numbered_parcels(given: Iterable[Parcel]) -> Iterable[dict[str, Any]]:
    return ({"position": n, **p.model_dump()} for n, p in enumerate(given, start=1))


def _insert(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> None:
    if values := list(rows):
        connection.execute(insert(table), values)


def _checked(name: str, records: Records) -> ShopFile:
    checked = check(records)
    problems = checked.problems
    if not checked.customers and not problems:
        problems.append("It holds no orders.")
    if problems:
        raise ImportProblem(name, problems)
    return ShopFile(
        name=name,
        customers=tuple(checked.customers.values()),
        orders=tuple(order for _, order, _ in checked.orders.values()),
        parcels=tuple(parcel for *_, of_order in checked.orders.values() for parcel in of_order),
        unknown=tuple(records.unknown),
    )


def _text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except IsADirectoryError:
        raise Unreadable("It is a directory; name a file.") from None
    except FileNotFoundError:
        raise Unreadable("There is no such file.") from None
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"It is not UTF-8 text (byte {error.start + 1}); save it as UTF-8."
        ) from error
    except (OSError, ValueError) as error:
        raise Unreadable(f"It cannot be read: {error}.") from error
    if not text.strip():
        raise Unreadable("It is empty.")
    return text
