"""What is wrong in a case: a shop with faults, order by order, and a model that breaks off."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal

import httpx2

from evals.case import Fault
from tools.failures import ServiceError
from tools.shop.models import Order
from tools.shop.protocol import Attempt, WriteState
from tools.shop.sql import SqlShop


@dataclass(frozen=True)
class FaultyShop(SqlShop):
    """A shop in a database, its faults by order id. What concerns one with `timeout` hangs.

    Where an answer to a change is to be lost, the shop is one outside: it changes its data itself.
    """

    faults: Mapping[str, Fault]

    @property
    def outside(self) -> bool:  # type: ignore[override]
        return any(fault.kind == "lost" for fault in self.faults.values())

    async def order(self, order_id: str) -> Order | None:
        fault = self.faults.get(order_id, Fault())
        await asyncio.sleep(fault.delay)
        if fault.kind == "timeout":
            await asyncio.Event().wait()
        if fault.kind == "error":
            raise ServiceError("The shop's service is out of order.")
        if fault.kind == "malformed":
            return Order.model_validate({"order_id": order_id, "status": "?"})
        return await super().order(fault.wrong_subject or order_id)

    async def cancel(self, order: Order, reason: str, attempt: Attempt) -> WriteState:
        async with self._made(order, attempt) as made:
            return await super().cancel(order, reason, made)

    async def change_address(self, order: Order, address: str, attempt: Attempt) -> WriteState:
        async with self._made(order, attempt) as made:
            return await super().change_address(order, address, made)

    async def refund(
        self, order: Order, amount: Decimal, currency: str, reason: str, attempt: Attempt
    ) -> WriteState:
        async with self._made(order, attempt) as made:
            return await super().refund(order, amount, currency, reason, made)

    async def find(self, order: Order, attempt: Attempt) -> WriteState | None:
        raise ServiceError("The shop's service is out of order.")

    @asynccontextmanager
    async def _made(self, order: Order, attempt: Attempt) -> AsyncIterator[Attempt]:
        """The attempt in a transaction; of a shop outside in its own, of which nobody may hear."""
        if attempt.db is not None:
            yield attempt
            return
        async with self.database.begin() as db:
            yield replace(attempt, db=db)
        if self.faults.get(order.order_id, Fault()).kind == "lost":
            raise ServiceError("The shop hung up.")


class BreakingOff(httpx2.AsyncBaseTransport):
    """Carries requests to a model, and breaks the n-th responses off; `left` are to come."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, numbers: Collection[int]) -> None:
        self._inner, self._asked, self.left = inner, 0, set(numbers)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        self._asked += 1
        if self._asked not in self.left:
            return response
        self.left.remove(self._asked)
        half = _half([chunk async for chunk in response.aiter_raw()])
        return httpx2.Response(response.status_code, headers=response.headers, content=half)


async def _half(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks[: len(chunks) // 2]:
        yield chunk
    raise httpx2.ReadError("The connection was closed.")
