"""Loads a shop's own file into the database, all or nothing.

    shop_file = read_shop_file(Path("orders.csv"))     # reads and checks; touches no database
    report = await import_shop(database, shop_file)    # one transaction

Both raise ImportProblem, which names every bad row at once. `records` describes the two formats.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from tools.database import Database
from tools.shop.records import CustomerRecord, OrderRecord, Unreadable, read_csv, read_json
from tools.shop.tables import customers, order_items, orders, parcels

SHOWN = 20
LARGEST = 50 * 10**6  # bytes


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
    """A file's checked content. `unknown` names the fields that nobody documented."""

    name: str
    customers: tuple[CustomerRecord, ...]
    orders: tuple[OrderRecord, ...]
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
    """Reads and checks a JSON or CSV file, UTF-8; what begins like JSON is taken for it.

    Raises ImportProblem where it cannot be read or anything in it is wrong.
    """
    problems: list[str] = []
    unknown: dict[str, None] = {}
    try:
        text = _text(path)
        is_json = path.suffix.lower() == ".json" or text.lstrip().startswith(("{", "["))
        raws = read_json(text, unknown) if is_json else read_csv(text, problems)
    except Unreadable as error:
        raise ImportProblem(path.name, [str(error)]) from None
    people: list[CustomerRecord] = []
    ordered: dict[str, OrderRecord] = {}
    for raw in raws:
        try:
            record = raw.model.model_validate(raw.fields, context=unknown)
        except ValidationError as error:
            problems += [raw.says(e) for e in error.errors()]
            continue
        if not isinstance(record, OrderRecord):
            people.append(record)
        elif ordered.setdefault(record.order_id, record) is not record:
            problems.append(f"{raw.place}: order {record.order_id} is in the file already")
    if not raws and not problems:
        problems.append("It holds no orders.")
    if problems:
        raise ImportProblem(path.name, problems)
    return ShopFile(path.name, tuple(people), tuple(ordered.values()), tuple(unknown))


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


def write_shop(connection: Connection, shop_file: ShopFile, empty: bool = False) -> ImportReport:
    """`import_shop` within a transaction that is open already."""
    owners = dict(iter(connection.execute(select(orders.c.order_id, orders.c.customer_id))))
    if empty and owners:
        raise NotEmpty(shop_file.name, ["The shop has orders already; it is not empty."])
    given = shop_file.orders
    taken = [o for o in given if owners.get(o.order_id, o.customer_id) != o.customer_id]
    if taken:
        belongs = "belongs to another customer in the database"
        raise ImportProblem(shop_file.name, [f"order {o.order_id} {belongs}" for o in taken])
    if replaced := [{"key": o.order_id} for o in given if o.order_id in owners]:
        connection.execute(delete(orders).where(orders.c.order_id == bindparam("key")), replaced)
    return ImportReport(
        customers=_write_customers(connection, shop_file),
        orders=_insert(connection, orders, (o.model_dump() for o in given)),
        items=_insert(connection, order_items, _parts(given, "items")),
        parcels=_insert(connection, parcels, _parts(given, "parcels")),
        replaced=len(replaced),
        unknown=shop_file.unknown,
    )


def _write_customers(connection: Connection, shop_file: ShopFile) -> int:
    """Whom the file names, in customers or in orders; what it leaves blank stays as it was."""
    given = [
        *(customer.model_dump() for customer in shop_file.customers),
        *(
            {"customer_id": o.customer_id, "name": o.customer_name, "email": o.customer_email}
            for o in shop_file.orders
        ),
    ]
    before = {c["customer_id"]: dict(c) for c in connection.execute(select(customers)).mappings()}
    after: dict[str, dict[str, Any]] = {}
    for said in given:
        key = said["customer_id"]
        known = after.get(key) or before.get(key) or {"name": "", "email": "", "locale": "en"}
        after[key] = known | {name: value for name, value in said.items() if value}
    _insert(connection, customers, (row for key, row in after.items() if key not in before))
    if old := [row | {"key": key} for key, row in after.items() if key in before]:
        mine = customers.c.customer_id == bindparam("key")
        connection.execute(update(customers).where(mine), old)
    return len(after)


def _parts(given: Iterable[OrderRecord], kind: str) -> Iterator[dict[str, Any]]:
    for order_id, parts in ((order.order_id, getattr(order, kind)) for order in given):
        for n, part in enumerate(parts, start=1):
            ids = {"order_id": order_id, "position": n, "parcel_id": f"{order_id}-P{n}"}
            yield ids | part.model_dump()


def _insert(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> int:
    """Inserts what the table has columns for, and says how many rows."""
    values = [{column.name: row[column.name] for column in table.columns} for row in rows]
    if values:
        connection.execute(insert(table), values)
    return len(values)


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # a pipe may never end
            raise Unreadable("It is no file but a directory, a pipe or a device.")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise Unreadable(f"It is larger than {LARGEST // 10**6} MB; load it in parts.")
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1}"
        raise Unreadable(f"It is not UTF-8 text ({where}); save it as UTF-8.") from None
    except OSError as error:
        raise Unreadable(f"It cannot be read: {str(error.strerror).lower()}.") from None
    if not text.strip():
        raise Unreadable("It is empty.")
    return text
