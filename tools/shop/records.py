"""A shop's own file, JSON or CSV, taken apart into records that know where they stood.

Values are still as the file has them; `importer` checks what they say.

JSON is a list of orders, or an object `{"customers": […], "orders": […]}`; the fields are the
tuples `…_FIELDS` below. CSV has one header line and at least one row an order, with `COLUMNS`;
further rows with the same `order_id` add an item or a parcel each, and repeat the order's own
columns or leave them blank. Commas, semicolons or tabs separate.

`REQUIRED` must be there, the rest need not. Days are written 2026-11-30, money with a decimal
point, a price is for one piece, `days` is the delivery time that the carrier states.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from tools.ids import normalise_order_id

REQUIRED = ("order_id", "customer_id", "status", "placed_on", "total", "currency")
ORDER_FIELDS = (*REQUIRED, "customer_name", "customer_email", "items", "parcels", "note", "address")
CUSTOMER_FIELDS = ("customer_id", "name", "email", "locale")
ITEM_FIELDS = ("sku", "name", "quantity", "price")
PARCEL_FIELDS = ("parcel_id", "carrier", "tracking_number", "promised_date", "days")

ITEM_COLUMNS = ("sku", "item", "quantity", "price")
PARCEL_COLUMNS = ("carrier", "tracking_number", "promised_date", "days")
OWN_COLUMNS = (*REQUIRED, "customer_name", "customer_email", "note", "address")
_RENAMED = {"item": "name"}
_CALLED = {"name": "item"}
COLUMNS = (*OWN_COLUMNS, *ITEM_COLUMNS, *PARCEL_COLUMNS)


class Unreadable(ValueError):
    """The file as a whole cannot be taken apart; says why."""


@dataclass(frozen=True)
class Record:
    """Some fields, and where in the file they stand: `line 4`, `orders[3] (A-17), items[0]`.

    `called` says under which name the file has a field, if it is another one.
    """

    where: str
    fields: Mapping[str, object]
    called: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OrderRecord(Record):
    """One order, without its items and parcels, which have places of their own."""

    items: list[Record] = field(default_factory=list)
    parcels: list[Record] = field(default_factory=list)


@dataclass
class Records:
    """`unknown` are field names that nobody documented, in the order they were met."""

    customers: list[Record] = field(default_factory=list)
    orders: list[OrderRecord] = field(default_factory=list)
    unknown: dict[str, None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def shown(value: object) -> str:
    """A value of the file as a message may show it: short, and without what a terminal obeys."""
    text = value if isinstance(value, str) else str(value)
    short = text[:40] + "…" * (len(text) > 40)
    return repr(short) if isinstance(value, str) else short


def read_json(text: str) -> Records:
    """Raises Unreadable where it is no JSON of the documented form."""
    data = _parse(text)
    found = Records()
    if isinstance(data, list):
        data = {"orders": data}
    if not isinstance(data, dict) or not {"customers", "orders"} & data.keys():
        raise Unreadable('It must be a list of orders or an object with "customers" and "orders".')
    _note_unknown(found, data, ("customers", "orders"), "")
    for record in _objects(found, data, "customers", ""):
        _note_unknown(found, record.fields, CUSTOMER_FIELDS, "customers.")
        found.customers.append(record)
    orders = list(_objects(found, data, "orders", ""))
    _refuse_missing({name for order in orders for name in order.fields}, orders, ORDER_FIELDS)
    found.orders = [_json_order(found, order) for order in orders]
    return found


def read_csv(text: str) -> Records:
    """Raises Unreadable where there is no header line with the required columns."""
    found = Records()
    rows = _rows(text)
    _, header = next(rows, ("", []))
    names = [name.strip().casefold() for name in header]
    _refuse_missing(set(names), [header], COLUMNS)
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise Unreadable(f"A column stands twice: {', '.join(twice)}.")
    _note_unknown(found, dict.fromkeys(filter(None, names)), COLUMNS, "")
    orders: dict[str, OrderRecord] = {}
    for where, cells in rows:
        if len(cells) != len(names):
            found.problems.append(f"{where}: {len(cells)} cells, the header has {len(names)}")
        elif any(map(str.strip, cells)):
            row = dict(zip(names, map(str.strip, cells), strict=True))
            _add_row(found, orders, Record(where, row))
    found.orders = list(orders.values())
    return found


def _parse(text: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise Unreadable(f"It is ambiguous: {shown(twice)} stands twice in one object.")
        return dict(pairs)

    def no_number(name: str) -> object:
        raise Unreadable(f"It is not valid JSON: {name} is no number.")

    try:
        # Numbers as Decimal: exact, and of any length.
        return json.loads(
            text,
            parse_float=Decimal,
            parse_int=Decimal,
            parse_constant=no_number,
            object_pairs_hook=once,
        )
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"It is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except RecursionError as error:
        raise Unreadable("It is not a shop's file: its JSON is nested too deeply.") from error


def _json_order(found: Records, order: Record) -> OrderRecord:
    _note_unknown(found, order.fields, ORDER_FIELDS, "")
    where = f"{order.where} ({shown(order.fields.get('order_id', 'no order_id'))})"
    own = {k: v for k, v in order.fields.items() if k not in ("items", "parcels")}
    result = OrderRecord(where, own)
    for name, known, to in (
        ("items", ITEM_FIELDS, result.items),
        ("parcels", PARCEL_FIELDS, result.parcels),
    ):
        for record in _objects(found, order.fields, name, f"{where}, "):
            _note_unknown(found, record.fields, known, f"{name}.")
            to.append(record)
    return result


def _objects(
    found: Records, data: Mapping[str, object], name: str, within: str
) -> Iterator[Record]:
    """The objects of the list `name`; null counts as not there, here and in their fields."""
    values = data.get(name) or []
    if not isinstance(values, list):
        found.problems.append(f"{within}{name}: must be a list")
        return
    for index, value in enumerate(values):
        where = f"{within}{name}[{index}]"
        if isinstance(value, dict):
            yield Record(where, {k: v for k, v in value.items() if v is not None})
        else:
            found.problems.append(f"{where}: must be an object")


def _note_unknown(found: Records, fields: Iterable[str], known: Sequence[str], within: str) -> None:
    # A leading underscore marks a remark, such as "_about".
    unknown = (name for name in fields if name not in known and not name.startswith("_"))
    names = (name if name.isprintable() else shown(name) for name in unknown)
    found.unknown.update(dict.fromkeys(within + name for name in names))


def _refuse_missing(names: set[str], anything: Sequence[object], documented: Sequence[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if anything and missing:
        raise Unreadable(
            f"It has no {', '.join(missing)}. Needed are {', '.join(REQUIRED)}; "
            f"known besides are {', '.join(n for n in documented if n not in REQUIRED)}."
        )


def _rows(text: str) -> Iterator[tuple[str, list[str]]]:
    header = text.lstrip().split("\n", 1)[0]
    reader = csv.reader(
        io.StringIO(text.lstrip(), newline=""), delimiter=max(",;\t", key=header.count), strict=True
    )
    skipped = text[: len(text) - len(text.lstrip())].count("\n")
    line = 1
    try:
        for cells in reader:
            if cells:
                yield f"line {skipped + line}", cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise Unreadable(f"It is not valid CSV: line {skipped + line}: {error}.") from error


def _add_row(found: Records, orders: dict[str, OrderRecord], row: Record) -> None:
    typed = str(row.fields["order_id"])
    try:
        key = normalise_order_id(typed)
    except ValueError:
        key = f"{row.where} {typed}"  # an order of its own, and a problem when it is checked
    own = {name: row.fields[name] for name in OWN_COLUMNS if row.fields.get(name)}
    order = orders.setdefault(key, OrderRecord(row.where, own))
    for name in own.keys() - {"order_id"}:
        if own[name] != order.fields.get(name):
            found.problems.append(
                f"{row.where}, {name}: order {key} has something else on {order.where}"
            )
    _add_part(found, order.items, row, ITEM_COLUMNS)
    parcel = {name: row.fields.get(name, "") for name in PARCEL_COLUMNS}
    if all(parcel != known.fields for known in order.parcels):
        _add_part(found, order.parcels, row, PARCEL_COLUMNS)


def _add_part(found: Records, to: list[Record], row: Record, columns: Sequence[str]) -> None:
    cells = {_RENAMED.get(name, name): row.fields.get(name, "") for name in columns}
    part = Record(row.where, cells, _CALLED)
    if not any(cells.values()):
        return
    # Two equal lines, or one line repeated because a row had to name a second parcel: unknowable.
    for before in to:
        if before.fields == cells:
            found.problems.append(
                f"{row.where}: repeats the item on {before.where}; "
                "put the number of pieces in quantity, and leave it blank beside another parcel"
            )
    to.append(part)
