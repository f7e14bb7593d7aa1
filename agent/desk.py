"""Conversations that are with a person: opened by a tool, given back by staff.

The tickets are the agent's, not the shop's: they hand over a thread, whichever shop is behind it,
and end with it. The row is also what is still to be delivered to the help desk.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, insert, select, update

from agent import rows, tables
from agent.actions import now
from tools.database import Database
from tools.tool import Context


@dataclass(frozen=True)
class SqlDesk:
    """`tools.tool.Desk` in the database."""

    database: Database

    async def open(self, ctx: Context, summary: str) -> str:
        """In the transaction of the write, so that nobody is told of a ticket that is not there."""
        if ctx.db is None:
            raise RuntimeError("A ticket is opened within a transaction.")
        row = {"ticket": self.ticket(ctx), "thread_id": ctx.thread, "customer_id": ctx.customer}
        said = {"summary": summary, "opened_at": now()}
        await ctx.db.execute(insert(tables.tickets).values(row | said))
        return self.ticket(ctx)

    def ticket(self, ctx: Context) -> str:
        return f"T-{ctx.key[:8].upper()}"

    async def is_open(self, ctx: Context, ticket: str) -> bool:
        c = tables.tickets.c
        return await self._count(c.ticket == ticket, c.thread_id == ctx.thread) > 0

    async def has(self, thread: str) -> bool:
        """Whether the thread is with a person, and the agent is silent in it."""
        return await self._count(tables.tickets.c.thread_id == thread) > 0

    async def give_back(self, thread: str, by: str, note: str = "") -> bool:
        """Returns the thread to the agent; whether it was with a person.

        by: the member of staff. note: what the agent is to know of what they did.
        """
        c = tables.tickets.c
        here = (c.thread_id == thread) & c.closed_at.is_(None)
        closed = {"closed_at": now(), "closed_by": by, "note": note}
        closing = update(tables.tickets).where(here).values(closed).returning(c.customer_id)
        async with self.database.begin() as db:
            customer = await db.scalar(closing)
            if customer is not None:
                about = {"thread_id": thread, "customer_id": customer}
                await rows.note_of(db, "given_back", by, **about)
        return customer is not None

    async def given_back(self, ctx: Context, ticket: str) -> str | None:
        """The note of whoever closed the ticket; None while it is open."""
        c = tables.tickets.c
        closed = (c.ticket == ticket, c.thread_id == ctx.thread, c.closed_at.is_not(None))
        async with self.database.connect() as db:
            note: str | None = await db.scalar(select(c.note).where(*closed))
        return note

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

    async def _count(self, *where: ColumnElement[bool]) -> int:
        still = tables.tickets.c.closed_at.is_(None)
        query = select(func.count()).select_from(tables.tickets).where(still, *where)
        async with self.database.connect() as db:
            return int(await db.scalar(query) or 0)
