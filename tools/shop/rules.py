"""The shop's rules for changing an order; each raises Refused with a sentence for the customer.

They are asked twice: before the customer confirms, so that nobody confirms the impossible, and
again where the change is made, on the order as it is then.
"""

from decimal import Decimal

from babel.numbers import get_currency_precision

from tools.failures import Refused
from tools.shop.models import Order, OrderStatus

STILL_HERE: frozenset[OrderStatus] = frozenset({"pending", "confirmed", "packed", "on_hold"})
"""While the goods have not left the house."""


def may_cancel(order: Order) -> None:
    _must_be_here(order, "it cannot be cancelled")


def may_change_address(order: Order) -> None:
    _must_be_here(order, "its address cannot be changed")


def may_refund(order: Order, amount: Decimal, currency: str) -> None:
    """No more than was paid and is not refunded yet, in the currency in which it was paid."""
    if order.status == "pending":
        raise Refused(f"Order {order.order_id} has not been paid, so nothing can be refunded.")
    if currency != order.currency:
        paid = f"Order {order.order_id} was paid in {order.currency}"
        raise Refused(f"{paid}, so it cannot be refunded in {currency}.")
    if amount != round(amount, get_currency_precision(currency)):
        raise Refused(f"{amount:f} {currency} is no amount that can be paid out.")
    if amount > (left := order.total - order.refunded):
        raise Refused(f"No more than {left:f} {currency} of order {order.order_id} is refundable.")


def _must_be_here(order: Order, otherwise: str) -> None:
    if order.status not in STILL_HERE:
        status = order.status.replace("_", " ")
        raise Refused(f"Order {order.order_id} is {status}, so {otherwise}.")
