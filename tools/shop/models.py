"""What a shop holds. Money is `Decimal` in the order's currency, days are dates, ids are text."""

from datetime import date
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tools.ids import OrderId

OrderStatus = Literal[
    "pending",
    "confirmed",
    "packed",
    "shipped",
    "in_transit",
    "out_for_delivery",
    "delivered",
    "delayed",
    "on_hold",
    "returned",
    "cancelled",
]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Customer(_Record):
    """Who orders. `locale` is a BCP 47 tag such as `de-DE`."""

    customer_id: str
    name: str = ""
    email: str = ""
    locale: str = "en"


class Item(_Record):
    """One line of an order; `price` is for one piece."""

    sku: str = ""
    name: str
    quantity: int
    price: Decimal


class Order(_Record):
    """One order. `currency` is an ISO 4217 code; `note` and `address` are free text, only data.

    `refunded` is the sum of its refunds so far.
    """

    order_id: OrderId
    customer_id: str
    status: OrderStatus
    placed_on: date
    total: Decimal
    currency: str
    items: tuple[Item, ...] = ()
    note: str = ""
    address: str = ""
    refunded: Decimal = Decimal(0)


class Parcel(_Record):
    """One parcel of an order; `days` is the delivery time in days as the carrier states it."""

    parcel_id: str
    order_id: OrderId
    carrier: str
    tracking_number: str
    promised_date: date
    days: int
