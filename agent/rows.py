"""The ledger's rows: each change of one goes through here, with its line in the audit trail."""

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent import tables
from agent.ledger_records import Record, now

ABOUT = ("thread_id", "customer_id", "tool", "subject", "key")


class Lost(Exception):
    """Somebody else has changed the record in the meantime; nothing was written."""


class Stale(Exception):
    """A newer turn of the thread has begun; what an older one still wants is not done."""


async def read(db: AsyncConnection, *where: ColumnElement[bool]) -> list[Record]:
    """The rows, oldest generation first."""
    query = select(tables.actions).where(*where).order_by(tables.actions.c.generation)
    return [Record(**row) for row in (await db.execute(query)).mappings()]


async def add(db: AsyncConnection, record: Record, by: str) -> Record:
    """A new row. Raises Lost where there is one of its key."""
    written = tables.inserting(db.dialect.name, tables.actions, replace=False)
    # Not by its rowcount, which SQLAlchemy keeps for updates only.
    if await db.scalar(written.returning(tables.actions.c.key), record.values) is None:
        raise Lost
    await note_of(db, record, record.state, by)
    return record


async def move(db: AsyncConnection, before: Record, by: str = "", **changed: Any) -> Record:
    """Changes a row as it was read. Raises Lost where it is another by now."""
    after = replace(before, **changed, version=before.version + 1, changed_at=now())
    c = tables.actions.c
    this = (c.key == before.key) & (c.version == before.version)
    if (await db.execute(update(tables.actions).where(this).values(after.values))).rowcount != 1:
        raise Lost
    await note_of(db, after, after.state, by)
    return after


async def note_of(db: AsyncConnection, record: Record, event: str, by: str) -> None:
    """A line in the audit trail about an action."""
    await note(db, event, by, **{name: record.values[name] for name in ABOUT})


async def note(db: AsyncConnection, event: str, by: str, **about: str) -> None:
    """A line about anything: what of `ABOUT` is not named is ""."""
    line = dict.fromkeys(ABOUT, "") | about | {"at": now(), "event": event, "by": by}
    await db.execute(insert(tables.audit).values(line))


def put_fence(db: Connection, thread: str, token: str) -> None:
    """Puts a token in force."""
    written = tables.inserting(db.dialect.name, tables.fences, replace=True)
    db.execute(written, {"thread_id": thread, "token": token})


async def check_fence(db: AsyncConnection, thread: str, token: str | None) -> None:
    """Raises Stale where another token is in force; none may take its place until `db` ends."""
    c = tables.fences.c
    if token is None:
        return
    query = select(c.token).where(c.thread_id == thread).with_for_update(read=True)
    if await db.scalar(query) != token:
        raise Stale


async def one_at_a_time(db: AsyncConnection, what: str) -> None:
    """Whoever names the same waits until `db` ends. On SQLite, all writers do so by nature."""
    if db.dialect.name == "postgresql":
        await db.execute(select(func.pg_advisory_xact_lock(func.hashtext(what))))
