"""A shop with faults: what a case says is wrong with it, order by order."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from evals.case import Fault
from tools.failures import ServiceError
from tools.shop.models import Customer, Order, Parcel
from tools.shop.protocol import Shop


@dataclass(frozen=True)
class FaultyShop:
    """The given shop, its faults by order id. A question about an order with `timeout` hangs."""

    shop: Shop
    faults: Mapping[str, Fault]

    async def customer(self, customer_id: str) -> Customer | None:
        return await self.shop.customer(customer_id)

    async def order(self, order_id: str) -> Order | None:
        fault = self.faults.get(order_id, Fault())
        await asyncio.sleep(fault.delay)
        if fault.kind == "timeout":
            await asyncio.Event().wait()
        if fault.kind == "error":
            raise ServiceError("The shop's service is out of order.")
        return await self.shop.order(fault.wrong_subject or order_id)

    async def orders_of(self, customer_id: str) -> list[Order]:
        return await self.shop.orders_of(customer_id)

    async def parcels(self, order: Order) -> list[Parcel]:
        return await self.shop.parcels(order)
