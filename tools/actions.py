"""The demo shop's write tools. The ledger runs them, each action once (`agent/ledger.py`).

What makes two calls the same action never holds a free text: a reason that is worded differently
is no second refund.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from tools.failures import Refused
from tools.ids import OrderId
from tools.shop import rules
from tools.shop.models import Order
from tools.shop.protocol import Attempt
from tools.tool import Arguments, Context, Receipt, tool

_DECIMAL = re.compile(r"[0-9]{1,14}(\.[0-9]{1,4})?")


def _decimal(value: object) -> Decimal:
    """A number is taken as well: models that are not held to a schema send one."""
    if isinstance(value, bool) or not _DECIMAL.fullmatch(str(value)):
        raise ValueError('an amount is written like "12.50"')
    return Decimal(str(value))


def _line(text: str) -> str:
    if any(not c.isprintable() and not c.isspace() for c in text):
        raise ValueError("it holds characters that cannot be printed")
    if not (line := " ".join(text.split())):
        raise ValueError("it is empty")
    return line


# As text: a JSON number may be read as a float on its way, and pydantic's own pattern for a Decimal
# looks ahead, which strict tool calling does not take.
Amount = Annotated[
    Decimal,
    Field(gt=0, max_digits=18, decimal_places=4),
    BeforeValidator(_decimal),
    WithJsonSchema({"type": "string", "description": 'a decimal number, such as "12.50"'}),
]
Currency = Annotated[
    str,
    AfterValidator(str.upper),
    Field(pattern="^[A-Za-z]{3}$"),
    WithJsonSchema({"type": "string", "description": "the ISO 4217 code, such as EUR"}),
]
Words = Annotated[
    str, AfterValidator(_line), Field(max_length=1000), WithJsonSchema({"type": "string"})
]


class Cancellation(Receipt):
    order_id: str


class AddressChange(Receipt):
    order_id: str
    address: str


class Refund(Receipt):
    order_id: str
    amount: Decimal
    currency: str


class HandedOver(Receipt):
    """note: what staff did, once the conversation is given back."""

    ticket: str
    status: Literal["with_person", "given_back"] = "with_person"
    note: str = ""

    @property
    def awaits(self) -> bool:
        return self.status == "with_person"


def _at_a_shop_outside(ctx: Context) -> bool:
    return ctx.shop.outside


async def _order(ctx: Context, arguments: Mapping[str, Any]) -> Order:
    ctx.shop.writable()
    return await ctx.shop.order(str(arguments["order_id"]))


def _asking_for(receipt: type[Receipt]) -> Callable[..., Awaitable[Receipt | None]]:
    """The `find` of a write at the shop: its receipt is made of its arguments."""

    async def find(ctx: Context, arguments: Arguments) -> Receipt | None:
        state = await ctx.shop.find(str(arguments["order_id"]), Attempt(ctx.key, ctx.db))
        return receipt.model_validate({**arguments, "state": state}) if state else None

    return find


async def _may_cancel(ctx: Context, arguments: Arguments) -> None:
    rules.may_cancel(await _order(ctx, arguments))


async def _is_cancelled(ctx: Context, receipt: Mapping[str, Any]) -> bool:
    return (await _order(ctx, receipt)).status == "cancelled"


@tool(
    effect="write",
    subject="order_id",
    limit=16,
    identity=("order_id",),
    check=_may_cancel,
    find=_asking_for(Cancellation),
    outside=_at_a_shop_outside,
    stands=_is_cancelled,
    question="Cancel order {order_id}?",
    required=("order_id", "state"),
    sentence="Cancellation of order {order_id}: {state}.",
)
async def cancel_order(ctx: Context, order_id: OrderId, reason: Words) -> Cancellation:
    """Cancels one order of the customer as a whole. Only before it is shipped."""
    state = await ctx.shop.cancel(order_id, reason, Attempt(ctx.key, ctx.db))
    return Cancellation(state=state, order_id=order_id)


async def _may_change_address(ctx: Context, arguments: Arguments) -> None:
    rules.may_change_address(await _order(ctx, arguments))


async def _is_sent_there(ctx: Context, receipt: Mapping[str, Any]) -> bool:
    return (await _order(ctx, receipt)).address == str(receipt["address"])


@tool(
    effect="write",
    subject="order_id",
    limit=16,
    identity=("order_id", "address"),
    check=_may_change_address,
    find=_asking_for(AddressChange),
    outside=_at_a_shop_outside,
    stands=_is_sent_there,
    question="Deliver order {order_id} to {address}?",
    required=("order_id", "address", "state"),
    sentence="New address of order {order_id}: {address} ({state}).",
)
async def change_address(ctx: Context, order_id: OrderId, address: Words) -> AddressChange:
    """Changes where one order is delivered. The whole address. Only before it is shipped."""
    state = await ctx.shop.change_address(order_id, address, Attempt(ctx.key, ctx.db))
    return AddressChange(state=state, order_id=order_id, address=address)


async def _may_refund(ctx: Context, arguments: Arguments) -> None:
    rules.may_refund(await _order(ctx, arguments), arguments["amount"], arguments["currency"])


@tool(
    effect="write",
    subject="order_id",
    limit=16,
    identity=("order_id", "amount", "currency"),
    check=_may_refund,
    find=_asking_for(Refund),
    outside=_at_a_shop_outside,
    question="Refund {amount} for order {order_id}?",
    required=("order_id", "amount", "state"),
    sentence="Refund of {amount} for order {order_id}: {state}.",
)
async def request_refund(
    ctx: Context, order_id: OrderId, amount: Amount, currency: Currency, reason: Words
) -> Refund:
    """Refunds an amount of one order, in the order's currency, up to what was paid for it."""
    attempt = Attempt(ctx.key, ctx.db)
    state = await ctx.shop.refund(order_id, amount, currency, reason, attempt)
    return Refund(state=state, order_id=order_id, amount=amount, currency=currency)


async def _is_with_a_person(ctx: Context, receipt: Mapping[str, Any]) -> bool:
    return ctx.desk is not None and await ctx.desk.is_open(ctx, str(receipt["ticket"]))


async def _find_handover(ctx: Context, arguments: Arguments) -> HandedOver | None:
    if ctx.desk is None:
        return None
    ticket = ctx.desk.ticket(ctx)
    note = await ctx.desk.given_back(ctx, ticket)
    if note is None:
        return None
    return HandedOver(state="done", ticket=ticket, status="given_back", note=note)


@tool(
    effect="write",
    find=_find_handover,
    outside=lambda ctx: False,
    stands=_is_with_a_person,
    question="Hand this conversation to a member of our staff?",
    required=("ticket",),
    sentence="A member of our staff will answer you here. Your ticket: {ticket}.",
)
async def escalate_to_human(ctx: Context, summary: Words) -> HandedOver:
    """Hands the conversation to a person, when the customer asks or nothing else helps.

    The summary says in one paragraph what the customer wants and what was found and done.
    """
    if ctx.desk is None or not ctx.thread:
        raise Refused("Nobody can take over here: conversations are not kept.")
    return HandedOver(state="done", ticket=await ctx.desk.open(ctx, summary))
