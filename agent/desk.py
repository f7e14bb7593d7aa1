"""Conversations that are with a person: opened by a tool, given back by staff.

The tickets are the agent's, not the shop's: they hand over a thread, whichever shop is behind it,
and end with it. The row is also what is still to be delivered to the help desk.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, insert, select, update

from agent import tables
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
        ticket = f"T-{ctx.key[:8].upper()}"
        row = {"ticket": ticket, "thread_id": ctx.thread, "customer_id": ctx.customer}
        said = {"summary": summary, "opened_at": now()}
        await ctx.db.execute(insert(tables.tickets).values(row | said))
        return ticket

    async def is_open(self, ctx: Context, ticket: str) -> bool:
        c = tables.tickets.c
        return await self._count(c.ticket == ticket, c.thread_id == ctx.thread) > 0

    async def has(self, thread: str) -> bool:
        """Whether the thread is with a person, and the agent is silent in it."""
        return await self._count(tables.tickets.c.thread_id == thread) > 0

    async def give_back(self, thread: str) -> bool:
        """Returns the thread to the agent; whether it was with a person."""
        c = tables.tickets.c
        here = (c.thread_id == thread) & c.closed_at.is_(None)
        async with self.database.begin() as db:
            closed = await db.execute(update(tables.tickets).where(here).values(closed_at=now()))
        return closed.rowcount > 0

    async def undelivered(self) -> list[dict[str, Any]]:
        """The tickets that the help desk has not got yet, oldest first."""
        c = tables.tickets.c
        query = select(tables.tickets).where(c.delivered_at.is_(None)).order_by(c.opened_at)
        async with self.database.connect() as db:
            return [dict(row) for row in (await db.execute(query)).mappings()]

    async def delivered(self, ticket: str) -> None:
        this = tables.tickets.c.ticket == ticket
        async with self.database.begin() as db:
            await db.execute(update(tables.tickets).where(this).values(delivered_at=now()))

    async def _count(self, *where: ColumnElement[bool]) -> int:
        still = tables.tickets.c.closed_at.is_(None)
        query = select(func.count()).select_from(tables.tickets).where(still, *where)
        async with self.database.connect() as db:
            return int(await db.scalar(query) or 0)
