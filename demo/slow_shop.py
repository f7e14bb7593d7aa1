"""A shop that takes its time over some orders, as real ones do."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from tools.shop.models import Customer, Order, Parcel
from tools.shop.protocol import Shop


@dataclass(frozen=True)
class SlowShop:
    """The given shop; `seconds` says how long each order takes to look up."""

    shop: Shop
    seconds: Mapping[str, float]

    async def customer(self, customer_id: str) -> Customer | None:
        return await self.shop.customer(customer_id)

    async def order(self, order_id: str) -> Order | None:
        await asyncio.sleep(self.seconds.get(order_id, 0))
        return await self.shop.order(order_id)

    async def orders_of(self, customer_id: str) -> list[Order]:
        return await self.shop.orders_of(customer_id)

    async def parcels(self, order: Order) -> list[Parcel]:
        return await self.shop.parcels(order)
