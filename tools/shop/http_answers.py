"""What the answers of the HTTP shop's API mean: its names, amounts, days and statuses, in ours.

Each model names the fields that are read, as an `alias` where the API has another name for what we
have too; whatever else the API sends is passed over. A field that
is missing or of another type is a ServiceError, and so is a status that `STATUSES` does not know: a
guess would be told to the customer as a fact.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from tools.failures import Refused, ServiceError, WrongSubject
from tools.ids import OrderId
from tools.shop.models import Customer, Order, OrderStatus, Parcel
from tools.shop.protocol import WriteState

STATUSES: Mapping[str, OrderStatus] = {
    "AWAITING_PAYMENT": "pending",
    "PAID": "confirmed",
    "PACKED": "packed",
    "SHIPPED": "shipped",
    "IN_TRANSIT": "in_transit",
    "WITH_COURIER": "out_for_delivery",
    "DELIVERED": "delivered",
    "LATE": "delayed",
    "ON_HOLD": "on_hold",
    "RETURNED": "returned",
    "CANCELED": "cancelled",
}

# What the shop says against a change, as the customer reads it.
REFUSALS: Mapping[str, str] = {
    "ORDER_LEFT": "The order has left the house, so it cannot be changed any more.",
    "ORDER_CANCELED": "The order is cancelled, so it cannot be changed any more.",
    "NOT_PAID": "The order has not been paid, so nothing can be refunded.",
    "TOO_MUCH": "That is more than is refundable for this order.",
}
REFUSED = "The shop refused it."

OPERATIONS: Mapping[str, WriteState] = {"SUCCEEDED": "done", "PENDING": "accepted"}


@contextmanager
def _understood() -> Iterator[None]:
    """What is wrong with an answer is not repeated: it may be anybody's data."""
    try:
        yield
    except ValueError:  # pydantic's own among them
        raise ServiceError("The shop's answer could not be understood.") from None


@_understood()
def customer_in(body: bytes) -> Customer:
    return CustomerAnswer.model_validate_json(body)


@_understood()
def orders_in(body: bytes) -> tuple[list["NumberedOrder"], str | None]:
    """The orders of a page, and the cursor of the next one."""
    page = OrdersAnswer.model_validate_json(body)
    return [order.ours() for order in page.orders], page.next


@_understood()
def parcels_in(body: bytes) -> list[Parcel]:
    return [*ShipmentsAnswer.model_validate_json(body).shipments]


@_understood()
def operation_in(body: bytes, order_id: str) -> WriteState:
    """What became of a change of this order. Raises Refused where it was taken and not made."""
    operation = OperationAnswer.model_validate_json(body)
    if operation.order_number != order_id:
        raise WrongSubject("The shop answered about another order.")
    if operation.state == "FAILED":
        raise Refused(REFUSALS.get(operation.reason or "", REFUSED))
    return OPERATIONS[operation.state]


def refusal_in(body: bytes) -> str:
    """Why the shop refused a change, in a sentence; a code that nobody knows is not repeated."""
    try:
        return REFUSALS.get(RefusalAnswer.model_validate_json(body).error, REFUSED)
    except ValueError:
        return REFUSED


class NumberedOrder(Order):
    """An order that remembers its internal id. No tool shows it."""

    internal_id: str = Field(exclude=True, repr=False)


class Answer(BaseModel, strict=True):
    """A JSON object of the API, read strictly: `"2"` is no number."""


def _day(time: object) -> date:
    if not isinstance(time, str):
        raise ValueError("a time is text")
    return datetime.fromisoformat(time).date()


Day = Annotated[date, BeforeValidator(_day)]
"""The day as the shop wrote it, at the shop's own offset: in UTC it may be the next one."""


class CustomerAnswer(Customer, Answer):
    customer_id: str = Field(alias="id")
    name: str = Field(alias="full_name")
    email: str
    locale: str = Field(alias="language")


class Money(Answer):
    """`cent_amount` counts the smallest unit, which `fraction_digits` decimals make visible."""

    cent_amount: int
    fraction_digits: int = Field(ge=0, le=4)
    currency: str = Field(pattern="^[A-Z]{3}$")

    def in_currency(self, currency: str) -> Decimal:
        if self.currency != currency:
            raise ValueError("an amount in another currency than its order")
        return Decimal(self.cent_amount).scaleb(-self.fraction_digits)


def money_of(amount: Decimal, currency: str) -> dict[str, Any]:
    """An amount as the API takes it."""
    digits = max(0, -int(amount.normalize().as_tuple().exponent))
    cents = int(amount.scaleb(digits))
    return {"cent_amount": cents, "fraction_digits": digits, "currency": currency}


class OperationAnswer(Answer):
    """A change that the shop keeps under its key; `reason` says why it FAILED."""

    order_number: OrderId
    state: Literal["PENDING", "SUCCEEDED", "FAILED"]
    reason: str | None = None


class RefusalAnswer(Answer):
    error: str


class Line(Answer):
    sku: str
    title: str
    count: int
    unit_price: Money

    def ours(self, currency: str) -> dict[str, Any]:
        price = self.unit_price.in_currency(currency)
        return {"sku": self.sku, "name": self.title, "quantity": self.count, "price": price}


class OrderAnswer(Answer):
    id: str
    number: str
    customer_id: str
    state: str
    created_at: Day
    total: Money
    refunded: Money | None = None
    lines: list[Line]
    shipping_address: str
    customer_note: str | None = None

    def ours(self) -> NumberedOrder:
        currency = self.total.currency
        return NumberedOrder.model_validate(
            {
                "internal_id": self.id,
                "order_id": self.number,
                "customer_id": self.customer_id,
                "status": STATUSES.get(self.state),
                "placed_on": self.created_at,
                "total": self.total.in_currency(currency),
                "refunded": self.refunded.in_currency(currency) if self.refunded else Decimal(0),
                "currency": currency,
                "items": [line.ours(currency) for line in self.lines],
                "note": self.customer_note or "",
                "address": self.shipping_address,
            }
        )


class OrdersAnswer(Answer):
    """A page of orders; `next` is the cursor of the next page, null on the last."""

    orders: list[OrderAnswer]
    next: str | None


class Shipment(Parcel, Answer):
    parcel_id: str = Field(alias="id")
    order_id: OrderId = Field(alias="order_number")
    tracking_number: str = Field(alias="tracking_code")
    promised_date: Day = Field(alias="due_at")
    days: int = Field(alias="transit_days")


class ShipmentsAnswer(Answer):
    shipments: list[Shipment]
