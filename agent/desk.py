"""Conversations that are with a person: opened by a tool, given back by staff.

The tickets are the agent's, not the shop's: they hand over a thread, whichever shop is behind it,
and end with it. The row is also what is still to be delivered to the help desk.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, insert, select, update

from agent import rows, tables
from agent.ledger_records import now
from tools.database import Database
from tools.tool import Context

STILL_OPEN = tables.tickets.c.closed_at.is_(None)


@dataclass(frozen=True)
class SqlDesk:
    """`tools.tool.Desk` in the database."""

    database: Database

    async def open(self, ctx: Context, summary: str) -> str:
        """In the transaction of the write, so that nobody is told of a ticket that is not there."""
        if ctx.db is None:
            raise RuntimeError("A ticket is opened within a transaction.")
        ticket, whose = self.ticket(ctx), {"thread_id": ctx.thread, "customer_id": ctx.customer}
        row = {"ticket": ticket, **whose, "summary": summary, "opened_at": now()}
        await ctx.db.execute(insert(tables.tickets).values(row))
        return ticket

    def ticket(self, ctx: Context) -> str:
        return f"T-{ctx.key[:8].upper()}"

    async def is_open(self, ctx: Context, ticket: str) -> bool:
        c = tables.tickets.c
        return bool(await self.tickets(c.ticket == ticket, c.thread_id == ctx.thread, STILL_OPEN))

    async def has(self, thread: str) -> bool:
        """Whether the thread is with a person, and the agent is silent in it."""
        return bool(await self.tickets(tables.tickets.c.thread_id == thread, STILL_OPEN))

    async def give_back(self, thread: str, by: str, note: str = "") -> bool:
        """Returns the thread to the agent; whether it was with a person.

        by: the member of staff. note: what the agent is to know of what they did.
        """
        c = tables.tickets.c
        here = (c.thread_id == thread) & STILL_OPEN
        closed = {"closed_at": now(), "closed_by": by, "note": note}
        closing = update(tables.tickets).where(here).values(closed).returning(c.customer_id)
        async with self.database.begin() as db:
            customer = await db.scalar(closing)
            if customer is not None:
                await rows.note(db, "given_back", by, thread_id=thread, customer_id=customer)
        return customer is not None

    async def given_back(self, ctx: Context, ticket: str) -> str | None:
        """The note of whoever closed the ticket; None while it is open."""
        c = tables.tickets.c
        closed = await self.tickets(c.ticket == ticket, c.thread_id == ctx.thread, ~STILL_OPEN)
        return closed[0]["note"] if closed else None

    async def tickets(self, *where: ColumnElement[bool]) -> list[dict[str, Any]]:
        """Oldest first."""
        query = select(tables.tickets).where(*where).order_by(tables.tickets.c.opened_at)
        async with self.database.connect() as db:
            return [dict(row) for row in (await db.execute(query)).mappings()]

    async def undelivered(self, thread: str | None = None) -> list[dict[str, Any]]:
        """The tickets, of one thread or of all, that the help desk has not got yet."""
        c = tables.tickets.c
        here = [c.thread_id == thread] if thread is not None else []
        return await self.tickets(c.delivered_at.is_(None), *here)

    async def delivered(self, ticket: str) -> None:
        this = tables.tickets.c.ticket == ticket
        async with self.database.begin() as db:
            await db.execute(update(tables.tickets).where(this).values(delivered_at=now()))
