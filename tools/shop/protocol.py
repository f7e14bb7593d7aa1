"""How a shop is asked: `Shop` is what any shop has to offer, `CustomerShop` what tools see.

A shop that takes changes too is a `WritableShop`.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, Protocol, runtime_checkable

from sqlalchemy.ext.asyncio import AsyncConnection

from tools.failures import NotFound, Refused, WrongSubject
from tools.shop.models import Customer, Order, Parcel

WriteState = Literal["done", "accepted"]
"""What became of a change: "accepted" where the shop will finish it later."""


class Shop(Protocol):
    """The data of one shop, whoever asks. Order ids come in normalised."""

    async def customer(self, customer_id: str) -> Customer | None: ...

    async def order(self, order_id: str) -> Order | None:
        """The order, whoever's it is."""

    async def orders_of(self, customer_id: str) -> list[Order]:
        """A customer's orders, oldest first."""

    async def parcels(self, order: Order) -> list[Parcel]:
        """An order's parcels. Takes the order: only who was given it can ask."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a change.

    key: the same for every attempt at the same change; a shop never makes it twice under one key.
    db: the transaction that a shop in the database makes it in, without committing.
    """

    key: str
    db: AsyncConnection | None = None


@runtime_checkable
class WritableShop(Shop, Protocol):
    """A shop that takes changes; each holds the rules of `tools/shop/rules.py` or stricter ones.

    They raise Refused where a rule says no, NotDone where the shop was not reached, ServiceError
    where it is not known what became of the change.
    """

    outside: bool
    """Whether changes are made elsewhere than in the transaction of their attempt."""

    async def cancel(self, order: Order, reason: str, attempt: Attempt) -> WriteState: ...

    async def change_address(self, order: Order, address: str, attempt: Attempt) -> WriteState: ...

    async def refund(
        self, order: Order, amount: Decimal, currency: str, reason: str, attempt: Attempt
    ) -> WriteState: ...

    async def find(self, order: Order, attempt: Attempt) -> WriteState | None:
        """What became of the change of this key; None where the shop never heard of it. Raises
        Refused where the shop took it and did not make it."""


class OrderNotFound(NotFound):
    """No such order for this customer: it does not exist, or it is somebody else's (P7)."""

    def __init__(self, order_id: str) -> None:
        super().__init__(f"There is no order {order_id} among this customer's orders.")
        self.order_id = order_id


@dataclass(frozen=True)
class CustomerShop:
    """One customer's view of the shop, and the one place where an order's owner is checked.

    A shop that answers about another order than it was asked for is not believed: WrongSubject.
    """

    shop: Shop
    customer_id: str

    async def order(self, order_id: str) -> Order:
        """The customer's order. Raises OrderNotFound, the same for unknown and for not theirs."""
        order = await self.shop.order(order_id)
        if order is None or order.customer_id != self.customer_id:
            raise OrderNotFound(order_id)
        if order.order_id != order_id:
            raise WrongSubject("The shop answered about another order.")
        return order

    async def orders(self) -> list[Order]:
        """All of the customer's orders, oldest first."""
        orders = await self.shop.orders_of(self.customer_id)
        if any(order.customer_id != self.customer_id for order in orders):
            raise WrongSubject("The shop listed orders of somebody else.")
        return orders

    async def parcels(self, order: Order) -> list[Parcel]:
        """The parcels of one of the customer's orders. Raises OrderNotFound for another's."""
        if order.customer_id != self.customer_id:
            raise OrderNotFound(order.order_id)
        parcels = await self.shop.parcels(order)
        if any(parcel.order_id != order.order_id for parcel in parcels):
            raise WrongSubject("The shop answered about the parcels of another order.")
        return parcels

    @property
    def outside(self) -> bool:
        return isinstance(self.shop, WritableShop) and self.shop.outside

    async def cancel(self, order_id: str, reason: str, attempt: Attempt) -> WriteState:
        order = await self.order(order_id)
        return await self.writable().cancel(order, reason, attempt)

    async def change_address(self, order_id: str, address: str, attempt: Attempt) -> WriteState:
        order = await self.order(order_id)
        return await self.writable().change_address(order, address, attempt)

    async def refund(
        self, order_id: str, amount: Decimal, currency: str, reason: str, attempt: Attempt
    ) -> WriteState:
        order = await self.order(order_id)
        return await self.writable().refund(order, amount, currency, reason, attempt)

    async def find(self, order_id: str, attempt: Attempt) -> WriteState | None:
        return await self.writable().find(await self.order(order_id), attempt)

    def writable(self) -> WritableShop:
        """Raises Refused for a shop that only answers."""
        if not isinstance(self.shop, WritableShop):
            raise Refused("This shop's orders cannot be changed from here.")
        return self.shop
