"""Delivers the tickets of conversations that wait for a person to the help desk.

    outbox = outbox_of(settings, database)    # None where SUPPORT_DESK_URL is not set
    left = await outbox.deliver(thread)       # how many could not be delivered this time

At least once: a ticket counts as delivered when the desk has said so, and is posted again until
then, under the same `Idempotency-Key`, by whoever comes first.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
from pydantic import SecretStr
from sqlalchemy import select

from agent import rows, tables
from agent.desk import SqlDesk
from agent.settings import Settings
from tools.database import Database
from tools.registry import TOOLS, WRITES

log = logging.getLogger(__name__)

ABOUT_ORDERS = [tool.name for tool in (*TOOLS, *WRITES) if tool.subject == "order_id"]
SECONDS = 10.0  # for one ticket
TIMEOUT = httpx2.Timeout(SECONDS, connect=5)

Hook = Callable[[Mapping[str, Any]], Awaitable[bool]]
"""Takes a ticket as plain JSON to where people see it; whether it is there now."""


@dataclass(frozen=True)
class Outbox:
    """`hook` may get a ticket more than once, by its field `ticket`."""

    database: Database
    hook: Hook

    async def deliver(self, thread: str | None = None) -> int:
        """Delivers what waits, of one thread or of all; how many tickets could not be."""
        desk, left = SqlDesk(self.database), 0
        for ticket in await desk.undelivered(thread):
            if await self.hook(await self._whole(ticket)):
                await desk.delivered(ticket["ticket"])
            else:
                left += 1
        return left

    async def _whole(self, ticket: Mapping[str, Any]) -> dict[str, Any]:
        """The ticket with the orders that its thread spoke of, and what was done in it."""
        c, thread = tables.calls.c, ticket["thread_id"]
        # Which tool it was is read here: PostgreSQL opens no JSON in which a text holds a NUL.
        spoken = select(c.call, c.subject).where(c.thread_id == thread)
        async with self.database.connect() as db:
            done = await rows.read(db, tables.actions.c.thread_id == thread)
            calls = [(call["name"], subject) for call, subject in await db.execute(spoken)]
        calls += [(record.tool, record.subject) for record in done]
        said = ("tool", "subject", "state", "receipt", "error")
        asked = ("ticket", "thread_id", "customer_id", "summary", "opened_at")
        return {
            **{name: ticket[name] for name in asked},
            "orders": sorted({subject for tool, subject in calls if tool in ABOUT_ORDERS} - {""}),
            "done": [{name: record.values[name] for name in said} for record in done],
        }


@dataclass(frozen=True)
class Webhook:
    """Posts a ticket as JSON. 2xx has taken it, 409 had it already; no redirect is followed."""

    url: str
    token: SecretStr | None = None
    # Certificates are read from files: here, as an event loop must not wait for them.
    _tls: ssl.SSLContext = field(default_factory=httpx2.create_ssl_context, repr=False)

    async def __call__(self, ticket: Mapping[str, Any]) -> bool:
        headers = {"idempotency-key": str(ticket["ticket"])}
        if self.token:
            headers["authorization"] = f"Bearer {self.token.get_secret_value()}"
        try:
            async with (
                asyncio.timeout(SECONDS),
                httpx2.AsyncClient(timeout=TIMEOUT, verify=self._tls) as client,
                client.stream("POST", self.url, json=ticket, headers=headers) as response,
            ):
                taken = response.is_success or response.status_code == 409
                problem = str(response.status_code)
        except (httpx2.HTTPError, TimeoutError) as error:
            taken, problem = False, type(error).__name__
        if not taken:
            log.warning("the help desk did not take a ticket: %s", problem)
        return taken


def outbox_of(settings: Settings, database: Database) -> Outbox | None:
    """The outbox to the webhook that the settings name, if any. It reads files: once, at start."""
    if settings.desk_url is None:
        return None
    return Outbox(database, Webhook(str(settings.desk_url), settings.desk_token))
