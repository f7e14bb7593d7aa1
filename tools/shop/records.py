"""A shop's own file, JSON or CSV, taken apart; and what its records must be.

JSON is a list of `OrderRecord`, or an object `{"customers": [CustomerRecord, …], "orders": […]}`.
CSV has one header line with `COLUMNS`, separated by commas, and at least one row an order; further
rows with the same `order_id` add an item or a parcel each, and repeat the order's own columns or
leave them blank.

Days are written 2026-11-30, money with a decimal point, a price is for one piece, `days` is the
delivery time that the carrier states.
"""

import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from babel.core import get_global
from babel.numbers import get_currency_precision, get_territory_currencies
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from tools.ids import OrderId
from tools.shop.models import OrderStatus


def _day(value: object) -> date:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ValueError("must be a day written like 2026-11-30") from None


def _number(value: object) -> object:
    """Python would also read the digits of other scripts, and digits with "_" between them."""
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError("must be a number written like 1250.50")
    return value


@cache
def _tender(day: date) -> set[str]:
    """The currencies that some country has on a day."""
    countries = get_global("territory_currencies")
    return {code for each in countries for code in get_territory_currencies(each, day, day)}


# PostgreSQL refuses NUL, a terminal obeys escape sequences.
_PLAIN = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"
_Text = Annotated[str, Field(max_length=2000, pattern=_PLAIN)]
_Filled = Annotated[_Text, Field(min_length=1)]
# Two ids that look alike would be two customers.
_Id = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\p{Cc}\p{Cf}]*$")]
_Amount = Annotated[Decimal, BeforeValidator(_number), Field(ge=0, max_digits=18)]
_Day = Annotated[date, BeforeValidator(_day)]
_Count = Annotated[int, BeforeValidator(_number), Field(ge=0, le=1_000_000)]


class Record(BaseModel, frozen=True, str_strip_whitespace=True):
    """What all records have in common. The context of a validation is a dict, for names that nobody
    documented to be its keys; a leading underscore marks a remark, such as "_about"."""

    @model_validator(mode="before")
    @classmethod
    def _pass_over(cls, fields: Any, info: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        known = {name: value for name, value in fields.items() if name in cls.model_fields}
        others = [name for name in fields if name not in known and not name.startswith("_")]
        info.context.update({n if n.isprintable() else shown(n): None for n in others})
        return {name: value for name, value in known.items() if value is not None}


class CustomerRecord(Record):
    """Who orders; a blank field means: not said, keep what is known."""

    customer_id: _Id
    name: _Text = ""
    email: _Text = ""
    locale: _Text = ""


class ItemRecord(Record):
    sku: _Text = ""
    name: _Filled
    quantity: Annotated[_Count, Field(ge=1)]
    price: _Amount


class ParcelRecord(Record):
    carrier: _Filled
    tracking_number: _Filled
    promised_date: _Day
    days: _Count


class OrderRecord(Record):
    order_id: OrderId
    customer_id: _Id
    status: OrderStatus
    placed_on: _Day
    total: _Amount
    currency: str
    customer_name: _Text = ""
    customer_email: _Text = ""
    note: _Text = ""
    address: _Text = ""
    items: tuple[ItemRecord, ...] = ()
    parcels: tuple[ParcelRecord, ...] = ()

    @model_validator(mode="after")
    def _in_money(self) -> "OrderRecord":
        """An amount that its currency does not have would be shown as another one."""
        code = self.currency
        if code not in _tender(self.placed_on):
            raise ValueError(f"{shown(code)} is no currency (ISO 4217) on {self.placed_on}")
        for amount in (self.total, *(item.price for item in self.items)):
            if amount != round(amount, get_currency_precision(code)):
                raise ValueError(f"{amount} has more decimals than the currency {code}")
        return self


class FileRecord(Record):
    """A JSON file as a whole."""

    customers: list[Any] = []
    orders: list[Any] = []


REQUIRED = [name for name, f in OrderRecord.model_fields.items() if f.is_required()]
# By column of a CSV file, the fields that it fills.
_PARTS = {
    "items": {"sku": "sku", "item": "name", "quantity": "quantity", "price": "price"},
    "parcels": {name: name for name in ParcelRecord.model_fields},
}
COLUMNS = [name for name in OrderRecord.model_fields if name not in _PARTS]
COLUMNS += [column for part in _PARTS.values() for column in part]


class Unreadable(Exception):
    """The file as a whole cannot be taken apart; says why."""


@dataclass
class Raw:
    """A record as the file has it. `parts` says where a CSV has its items and parcels."""

    model: type[CustomerRecord] | type[OrderRecord]
    place: str
    fields: Any
    parts: dict[tuple[object, ...], str] = field(default_factory=dict)

    def says(self, error: ErrorDetails) -> str:
        """What pydantic found wrong with the fields, in our words, with the place."""
        place, loc = self.place, error["loc"]
        if len(loc) > 1:
            place = self.parts.get(loc[:2], f"{place}, {loc[0]}[{loc[1]}]")
        if loc and isinstance(loc[-1], str):
            place = f"{place}, {loc[-1]}"
        words = _WORDS.get(error["type"], error["msg"].removeprefix("Value error, ").rstrip("."))
        value = error["input"]
        return f"{place}: {words}" + f" (it is {shown(value)})" * isinstance(value, str)


_WORDS = {
    "missing": "is missing",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "string_too_short": "must not be blank",
    "string_pattern_mismatch": "holds control characters or hidden ones",
}


def shown(value: object) -> str:
    """A value of the file as a message may show it: short, and without what a terminal obeys."""
    text = str(value)
    return repr(text[:40] + "…" * (len(text) > 40))


def read_json(text: str, unknown: dict[str, None]) -> list[Raw]:
    """Raises Unreadable."""
    try:
        # Numbers stay text as in a CSV: exact, and of any length.
        data = json.loads(
            text, object_pairs_hook=_once, parse_float=str, parse_int=str, parse_constant=str
        )
        whole = {"orders": data} if isinstance(data, list) else data
        file = FileRecord.model_validate(whole, context=unknown)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Unreadable(f"It is not valid JSON: {where}: {error.msg}.") from None
    except RecursionError:
        raise Unreadable("It is not a shop's file: its JSON is nested too deeply.") from None
    except ValidationError:
        raise Unreadable(
            'It must be a list of orders, or an object with the lists "customers" and "orders".'
        ) from None
    if file.orders:
        _refuse_missing({n for order in file.orders if isinstance(order, dict) for n in order})
    return [
        *(Raw(CustomerRecord, f"customers[{n}]", v) for n, v in enumerate(file.customers)),
        *(Raw(OrderRecord, f"orders[{n}]{_label(v)}", v) for n, v in enumerate(file.orders)),
    ]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a name that stands twice Python would keep the last value, silently."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise Unreadable(f"{shown(name)} stands twice in one object{_label(fields)}.")
        fields[name] = value
    return fields


def _label(order: object) -> str:
    return f" ({shown(n)})" if isinstance(order, dict) and (n := order.get("order_id")) else ""


def read_csv(text: str, problems: list[str]) -> list[Raw]:
    """Adds the problems of rows that do not fit together. Raises Unreadable."""
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        names = reader.fieldnames = [n.strip().casefold() for n in reader.fieldnames or ()]
        if len(names) == 1 and (mark := re.search(r"order_id(\W)|(\W)order_id", names[0])):
            raise Unreadable(f"Its columns stand between {mark[1] or mark[2]!r}, not commas.")
        _refuse_missing(names)
        rows = [(f"line {reader.line_num}", row) for row in reader]
    except csv.Error as error:
        raise Unreadable(f"It is not valid CSV after line {reader.line_num}: {error}.") from None
    if twice := [name for name in COLUMNS if names.count(name) > 1]:
        raise Unreadable(f"A column stands twice: {', '.join(twice)}.")
    orders: dict[str, Raw] = {}
    for place, row in rows:
        if None in row or None in row.values():
            problems.append(f"{place}: it has more or fewer cells than the header")
        elif cells := {name: cell.strip() for name, cell in row.items() if name and cell.strip()}:
            order = orders.setdefault(cells.get("order_id", place), Raw(OrderRecord, place, {}))
            problems += _add_row(order, place, cells)
    return list(orders.values())


def _add_row(order: Raw, place: str, cells: dict[str, str]) -> Iterator[str]:
    for kind, columns in _PARTS.items():
        part = {columns[name]: cells.pop(name) for name in columns if name in cells}
        parts = order.fields.setdefault(kind, [])
        if part and (kind, *part.items()) not in order.parts:
            where = f"{place}, {kind[:-1]}"
            order.parts[kind, len(parts)] = order.parts[kind, *part.items()] = where
            parts.append(part)
        elif part and kind == "items":  # two of them, or repeated to name another parcel?
            yield f"{place}: repeats an item; put the number of pieces in quantity"
    for name, cell in cells.items():
        if order.fields.setdefault(name, cell) != cell and name in COLUMNS:
            yield f"{place}, {name}: the same order has something else on {order.place}"


def _refuse_missing(names: Collection[str]) -> None:
    if missing := [name for name in REQUIRED if name not in names]:
        others = ", ".join(name for name in COLUMNS if name not in REQUIRED)
        raise Unreadable(
            f"It has no {', '.join(missing)}. Needed are {', '.join(REQUIRED)}; known besides are "
            f"{others}."
        )
