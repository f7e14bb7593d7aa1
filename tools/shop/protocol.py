"""How a shop is asked: `Shop` is what any shop has to offer, `CustomerShop` what tools see."""

from dataclasses import dataclass
from typing import Protocol

from tools.failures import NotFound, WrongSubject
from tools.shop.models import Customer, Order, Parcel


class Shop(Protocol):
    """The data of one shop, whoever asks. Order ids come in normalised."""

    async def customer(self, customer_id: str) -> Customer | None: ...

    async def order(self, order_id: str) -> Order | None:
        """The order, whoever's it is."""

    async def orders_of(self, customer_id: str) -> list[Order]:
        """A customer's orders, oldest first."""

    async def parcels(self, order: Order) -> list[Parcel]:
        """An order's parcels. Takes the order: only who was given it can ask."""


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
