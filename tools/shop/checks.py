"""What the values of a shop's own file must be. All that is wrong is collected, not the first."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, TypeVar
from unicodedata import category

from babel import Locale, UnknownLocaleError
from babel.numbers import list_currencies
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails

from tools.shop.models import Customer, Item, Order, Parcel
from tools.shop.records import OrderRecord, Record, Records, shown

_Model = TypeVar("_Model", bound=BaseModel)


def _plain(text: str) -> str:
    # PostgreSQL refuses NUL, a terminal obeys escape sequences.
    if any(category(c) == "Cc" and c not in "\n\r\t" for c in text):
        raise ValueError("holds control characters")
    return text


def _filled(text: str) -> str:
    if not text:
        raise ValueError("must not be blank")
    return text


def _day(value: object) -> object:
    # Pydantic would also take numbers, as seconds since 1970.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return value
    raise ValueError("must be a day written like 2026-11-30")


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _currency(code: str) -> str:
    if code not in list_currencies():
        raise ValueError("must be an ISO 4217 code such as EUR")
    return code


def _locale(tag: str) -> str:
    try:
        return tag and str(Locale.parse(tag.replace("_", "-"), sep="-")).replace("_", "-")
    except (UnknownLocaleError, ValueError):
        raise ValueError("must be a language tag such as de-DE") from None


_Text = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=2000), AfterValidator(_plain)
]
_Filled = Annotated[_Text, AfterValidator(_filled)]
_Amount = Annotated[
    Decimal, BeforeValidator(_no_truth), Field(ge=0, max_digits=18, decimal_places=4)
]
_Day = Annotated[date, BeforeValidator(_day)]
_Count = Annotated[int, BeforeValidator(_no_truth), Field(le=1_000_000)]


class _Customer(Customer):
    customer_id: _Filled
    name: _Text = ""
    email: _Text = ""
    locale: Annotated[_Text, AfterValidator(_locale)] = ""


class _Item(Item):
    sku: _Text = ""
    name: _Filled
    quantity: Annotated[_Count, Field(ge=1)]
    price: _Amount


class _Parcel(Parcel):
    order_id: str = ""
    parcel_id: _Text = ""
    carrier: _Filled
    tracking_number: _Filled
    promised_date: _Day
    days: Annotated[_Count, Field(ge=0)]


class _Order(Order):
    customer_id: _Filled
    placed_on: _Day
    total: _Amount
    currency: Annotated[str, AfterValidator(_currency)]
    note: _Text = ""
    address: _Text = ""


_OF_CUSTOMER = {
    "customer_id": "customer_id",
    "name": "customer_name",
    "email": "customer_email",
}


def check(records: Records) -> "Checked":
    """Reads records into the shop's types; what cannot be read is named in `problems`."""
    checked = Checked(list(records.problems))
    for record in records.customers:
        checked.add_customer(record)
    for order in records.orders:
        checked.add_order(order)
    return checked


@dataclass
class Checked:
    """Customers by id; orders by id, with where they stand and their parcels."""

    problems: list[str]
    customers: dict[str, Customer] = field(default_factory=dict)
    orders: dict[str, tuple[str, Order, list[Parcel]]] = field(default_factory=dict)

    def add_customer(self, record: Record) -> None:
        new = self._read(_Customer, record)
        if new is None:
            return
        said = {k: v for k, v in new.model_dump().items() if v}
        known = self.customers.get(new.customer_id, new).model_dump()
        for name in said:
            if known[name] and known[name] != said[name]:
                place = f"{record.where}, {record.called.get(name, name)}"
                self.problems.append(
                    f"{place}: customer {new.customer_id} has another one elsewhere"
                )
        self.customers[new.customer_id] = Customer.model_validate(known | said)

    def add_order(self, record: OrderRecord) -> None:
        items = [self._read(_Item, item) for item in record.items]
        parcels = [self._read(_Parcel, parcel) for parcel in record.parcels]
        order = self._read(_Order, record)
        if order is None:
            return
        said = {name: record.fields.get(called, "") for name, called in _OF_CUSTOMER.items()}
        self.add_customer(Record(record.where, said, _OF_CUSTOMER))
        whole = order.model_copy(update={"items": tuple(i for i in items if i)})
        self._place(record.where, whole, _parcels(order.order_id, [p for p in parcels if p]))

    def _place(self, where: str, order: Order, parcels: list[Parcel]) -> None:
        before, *known = self.orders.setdefault(order.order_id, (where, order, parcels))
        if known != [order, parcels]:
            self.problems.append(f"{where}: {before} is the same order id with other content")
        if len({parcel.parcel_id for parcel in parcels}) < len(parcels):
            self.problems.append(f"{where}: two parcels have one parcel_id")

    def _read(self, model: type[_Model], record: Record) -> _Model | None:
        try:
            return model.model_validate(record.fields)
        except ValidationError as error:
            self.problems.extend(_said(record, e) for e in error.errors())
            return None


def _parcels(order_id: str, given: Iterable[Parcel]) -> list[Parcel]:
    return [
        p.model_copy(
            update={"order_id": order_id, "parcel_id": p.parcel_id or f"{order_id}-P{number}"}
        )
        for number, p in enumerate(given, start=1)
    ]


def _said(record: Record, error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    place = f"{record.where}, {record.called.get(name, name)}"
    if error["type"] == "missing":
        return f"{place}: is missing"
    value = error["input"]
    got = f" (it is {shown(value)})" if isinstance(value, str | int | Decimal) else ""
    return f"{place}: {error['msg'].removeprefix('Value error, ').rstrip('.')}{got}"
