"""The demo shop's read tools. Each answers from the customer's own view of the shop.

What they return is what a card may show: every field is a placeholder by its plain name. How a
card and an entry of a list read stands in `tools/locales`, for each language.
"""

from collections import defaultdict
from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

from tools.ids import OrderId
from tools.shop.models import Order, OrderStatus
from tools.tool import Context, tool


class ItemView(BaseModel):
    sku: str
    name: str
    quantity: int
    price: Decimal
    currency: str


class OrderLine(BaseModel, from_attributes=True):
    order_id: str
    status: OrderStatus
    placed_on: date
    total: Decimal
    currency: str


class OrderList(BaseModel):
    orders: list[OrderLine]


class OrderView(OrderLine):
    items: list[ItemView]
    address: str
    note: str
    refunded: Decimal


class ParcelView(BaseModel, from_attributes=True):
    carrier: str
    tracking_number: str
    promised_date: date
    days: int


class DeliveryView(BaseModel):
    """promised_date and days speak of the whole order: they are those of its last parcel."""

    order_id: str
    status: OrderStatus
    promised_date: date | None
    days: int | None
    parcels: list[ParcelView]


class Total(BaseModel):
    total: Decimal
    currency: str


class Comparison(BaseModel):
    """Sums stand apart per currency; dates are promised delivery dates, null without parcels."""

    order_ids: list[str]
    totals: list[Total]
    earliest_order_id: str | None
    earliest_date: date | None
    latest_order_id: str | None
    latest_date: date | None


@tool(
    subject="order_id",
    limit=16,
    required=("order_id", "status"),
    sentence="Order {order_id}: {status}, {total}.",
)
async def get_order(ctx: Context, order_id: OrderId) -> OrderView:
    """One order of the customer: status, date, total, items, address, note. Not its delivery."""
    order = await ctx.shop.order(order_id)
    items = [{**dict(item), "currency": order.currency} for item in order.items]
    return OrderView.model_validate({**dict(order), "items": items})


@tool(
    subject="order_id",
    limit=16,
    required=("order_id", "parcels"),
    sentence="Order {order_id}: {status}. Parcels: {parcels}.",
)
async def get_delivery(ctx: Context, order_id: OrderId) -> DeliveryView:
    """The delivery of one order: parcels with carrier, tracking number, promised date, days."""
    order = await ctx.shop.order(order_id)
    parcels = await ctx.shop.parcels(order)
    last = max(parcels, key=lambda parcel: (parcel.promised_date, parcel.days), default=None)
    return DeliveryView(
        order_id=order.order_id,
        status=order.status,
        promised_date=last.promised_date if last else None,
        days=last.days if last else None,
        parcels=[ParcelView.model_validate(parcel) for parcel in parcels],
    )


@tool(
    card="optional",
    limit=16,
    required=("orders",),
    sentence="Your orders: {orders}.",
)
async def list_orders(ctx: Context) -> OrderList:
    """All orders of the customer, oldest first, with status, date and total."""
    return OrderList.model_validate({"orders": await ctx.shop.orders()})


@tool(
    limit=16,
    required=("order_ids",),
    sentence="Orders {order_ids} together: {totals}.",
)
async def compare_orders(
    ctx: Context, order_ids: Annotated[list[OrderId], Field(min_length=1, max_length=50)]
) -> Comparison:
    """Values derived from several orders: the sum per currency, the earliest and latest delivery.

    Use it for every sum or comparison; never add or compare values yourself.
    """
    orders = [await ctx.shop.order(order_id) for order_id in dict.fromkeys(order_ids)]
    due = await _due(ctx, orders)
    earliest = min(due, key=due.__getitem__, default=None)
    latest = max(due, key=due.__getitem__, default=None)
    return Comparison(
        order_ids=[order.order_id for order in orders],
        totals=_totals(orders),
        earliest_order_id=earliest,
        earliest_date=due[earliest] if earliest else None,
        latest_order_id=latest,
        latest_date=due[latest] if latest else None,
    )


async def _due(ctx: Context, orders: list[Order]) -> dict[str, date]:
    """When the last parcel of each order is due; orders without parcels are left out."""
    days = {
        order.order_id: [p.promised_date for p in await ctx.shop.parcels(order)] for order in orders
    }
    return {order_id: max(dates) for order_id, dates in days.items() if dates}


def _totals(orders: list[Order]) -> list[Total]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for order in orders:
        sums[order.currency] += order.total
    return [Total(total=total, currency=currency) for currency, total in sums.items()]
