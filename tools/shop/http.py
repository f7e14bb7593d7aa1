"""A shop behind an HTTP API: the worked example of bringing one's own (docs/your-own-shop.md).

The API is invented, and like many in what is awkward about it: one token for everybody's orders, an
internal id behind each order number, lists in pages, limits, and names of its own.

    GET /customers/C-1001
    GET /orders?number=A-17                 {"orders": […], "next": null}, at most one order
    GET /orders?customer=C-1001&cursor=…    {"orders": […], "next": "a cursor", or null}
    GET /orders/ord_5f2/shipments           {"shipments": […]}

A change carries an `Idempotency-Key`, under which the API makes it once and keeps an operation. A
cancellation is accepted (202) and finished later. 409 says which rule is against it.

    POST /orders/ord_5f2/cancellations      {"reason": …}
    PUT  /orders/ord_5f2/shipping-address   {"address": …}
    POST /orders/ord_5f2/refunds            {"amount": {…}, "reason": …}
    GET  /operations/KEY                    {"key": …, "order_number": …, "state": "PENDING"}

How it is asked stands here; what its answers mean, in `http_answers`.
"""

import asyncio
import logging
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx2
import tenacity
from pydantic import SecretStr

from tools.failures import NotDone, Refused, ServiceError
from tools.shop.http_answers import (
    NumberedOrder,
    customer_in,
    money_of,
    operation_in,
    orders_in,
    parcels_in,
    refusal_in,
)
from tools.shop.models import Customer, Order, Parcel
from tools.shop.protocol import Attempt, WriteState

log = logging.getLogger(__name__)

ATTEMPTS = 3
LONGEST_PAUSE = 3.0  # seconds; a shop that asks for more is busy, and the customer is told so
MOST_PAGES = 100
TIMEOUT = httpx2.Timeout(30, connect=5)  # of one wait; a call as a whole ends with its tool's
NO_LIST = b""  # what stands for a list that the API does not have: not understood, never empty
LIMITS = httpx2.Limits(max_connections=32, max_keepalive_connections=16)


class HttpShop:
    """`WritableShop` over the API. Raises ServiceError where it does not answer understandably."""

    outside = True

    def __init__(self, url: str, token: SecretStr | None = None) -> None:
        self.url, self._token = url, token
        # Certificates are read from files: here, as an event loop must not wait for them.
        self._tls = httpx2.create_ssl_context()
        self._clients: dict[asyncio.AbstractEventLoop, httpx2.AsyncClient] = {}

    async def customer(self, customer_id: str) -> Customer | None:
        body = await self._get(f"customers/{quote(customer_id, safe='')}")
        found = None if body is None else customer_in(body)
        return found if found and found.customer_id == customer_id else None

    async def order(self, order_id: str) -> Order | None:
        body = await self._get("orders", number=order_id)
        orders = [] if body is None else orders_in(body)[0]
        return next((o for o in orders if o.order_id == order_id), orders[0] if orders else None)

    async def orders_of(self, customer_id: str) -> list[Order]:
        found: dict[str, Order] = {}
        query, cursors = {"customer": customer_id}, {""}
        while len(cursors) <= MOST_PAGES:
            orders, cursor = orders_in(await self._get("orders", **query) or NO_LIST)
            found |= {order.order_id: order for order in orders}
            if not cursor:
                return sorted(found.values(), key=lambda order: (order.placed_on, order.order_id))
            if cursor in cursors:
                break
            cursors.add(cursor)
            query["cursor"] = cursor
        raise ServiceError("The shop's list of orders has no end.")  # part of it is no answer

    async def parcels(self, order: Order) -> list[Parcel]:
        return parcels_in(await self._get(_path(order, "shipments")) or NO_LIST)

    # No rule is asked here: under a key that has done its work, they speak of what is after it.
    async def cancel(self, order: Order, reason: str, attempt: Attempt) -> WriteState:
        return await self._change("POST", order, "cancellations", attempt, reason=reason)

    async def change_address(self, order: Order, address: str, attempt: Attempt) -> WriteState:
        return await self._change("PUT", order, "shipping-address", attempt, address=address)

    async def refund(
        self, order: Order, amount: Decimal, currency: str, reason: str, attempt: Attempt
    ) -> WriteState:
        money = money_of(amount, currency)
        return await self._change("POST", order, "refunds", attempt, amount=money, reason=reason)

    async def find(self, order: Order, attempt: Attempt) -> WriteState | None:
        body = await self._get(f"operations/{quote(attempt.key, safe='')}")
        return None if body is None else operation_in(body, order.order_id)

    async def close(self) -> None:
        """Closes the connections of the running event loop; a later question opens new ones."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.aclose()

    async def _get(self, path: str, **query: str) -> bytes | None:
        """The body of the answer; None where the API says 404."""
        request = self._client().build_request("GET", path, params=query)
        try:
            return await _send(self._client(), request, [])
        except httpx2.HTTPError as error:
            if _status(error) == 404:
                return None
            raise ServiceError(_failure(error)) from None

    async def _change(
        self, method: str, order: Order, what: str, attempt: Attempt, **content: Any
    ) -> WriteState:
        """Raises Refused, NotDone where no attempt can have arrived, else ServiceError."""
        key = {"idempotency-key": attempt.key}
        request = self._client().build_request(
            method, _path(order, what), json=content, headers=key
        )
        failed: list[httpx2.HTTPError] = []
        try:
            body = await _send(self._client(), request, failed)
        except httpx2.HTTPError as error:
            sentence = _failure(error)
            if not all(_did_nothing(each) for each in failed):
                raise ServiceError(sentence) from None
            if isinstance(error, httpx2.HTTPStatusError) and _status(error) == 409:
                raise Refused(refusal_in(error.response.content)) from None
            raise NotDone(sentence) from None
        return operation_in(body, order.order_id)

    def _client(self) -> httpx2.AsyncClient:
        """The client of the running event loop, to which its connections are bound."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for closed in [each for each in list(self._clients) if each.is_closed()]:
                self._clients.pop(closed, None)
            token = self._token and f"Bearer {self._token.get_secret_value()}"
            self._clients[loop] = httpx2.AsyncClient(
                base_url=self.url,
                headers={"authorization": token} if token else {},
                timeout=TIMEOUT,
                limits=LIMITS,
                verify=self._tls,
            )
        return self._clients[loop]


def _asked_pause(error: BaseException) -> float:
    """Seconds that a refusal asks to wait (Retry-After of RFC 9110: a number or a date), else 0."""
    if not isinstance(error, httpx2.HTTPStatusError):
        return 0.0
    after = error.response.headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    try:
        at = parsedate_to_datetime(after)
    except ValueError:
        return 0.0
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _may_pass(error: BaseException) -> bool:
    """Whether asking once more may help, and soon. Reads and what carries a key may be repeated."""
    if _status(error) == 429 or _status(error) >= 500:
        return _asked_pause(error) <= LONGEST_PAUSE
    return isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError)


@tenacity.retry(
    retry=tenacity.retry_if_exception(_may_pass),
    wait=tenacity.wait_exception(_asked_pause) + tenacity.wait_random_exponential(0.1, max=1),
    stop=tenacity.stop_after_attempt(ATTEMPTS),
    reraise=True,
)
async def _send(
    client: httpx2.AsyncClient, request: httpx2.Request, failed: list[httpx2.HTTPError]
) -> bytes:
    """The body of the answer, patiently; `failed` gets what was wrong with each attempt."""
    try:
        return (await client.send(request)).raise_for_status().content
    except httpx2.HTTPError as error:
        failed.append(error)
        raise


def _did_nothing(error: httpx2.HTTPError) -> bool:
    """Whether a change that failed so was certainly not made. 422 says that the key is taken."""
    never_sent = httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout
    return isinstance(error, never_sent) or (400 <= _status(error) < 500 and _status(error) != 422)


def _path(order: Order, what: str) -> str:
    assert isinstance(order, NumberedOrder), "This shop did not give that order."
    return f"orders/{quote(order.internal_id, safe='')}/{what}"


def _status(error: BaseException) -> int:
    return error.response.status_code if isinstance(error, httpx2.HTTPStatusError) else 0


def _failure(error: httpx2.HTTPError) -> str:
    """What the model and the customer may read of it: no address, no value, no token."""
    status = _status(error)
    log.warning("the shop's API failed: %s", status or type(error).__name__)
    if status == 429:
        return "The shop is busy."
    if status in (401, 403):
        return "The shop did not let this agent in."
    if isinstance(error, httpx2.TimeoutException):
        return "The shop did not answer in time."
    return "The shop failed." if status else "The shop could not be reached."
