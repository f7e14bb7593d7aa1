"""Takes a person out of what is kept; what was done stays on record, without them.

    threads = await threads_of(database, customer)
    erased = await erase(ledger, threads, "sam", customer)   # {"threads": 2, …}

Journal, checkpoints and tickets of the threads are deleted. The ledger and the audit trail keep
which tool did what to which order, for how much, when, and who of the staff decided; they lose the
customer, the thread and all other words. Their keys stay: derived one way from what the action was,
they see to it that it is not done again. The shop's own records are the shop's.

Each step may be repeated, and the one that forgets which threads there were comes last: whoever is
killed in between erases again. A LangGraph server deletes its own checkpoints; backups, and what a
database server still holds of deleted rows, are the operator's.
"""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, case, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from agent import rows, tables
from agent.checkpoints import open_saver
from agent.ledger import Ledger
from agent.ledger_records import Record, now
from tools import database
from tools.database import Database

KEPT = ("amount", "currency", "state")
WITH_THE_PERSON = (tables.turns, tables.calls, tables.fences, tables.tickets, tables.threads)
OPEN = ("waiting", "claimed", "accepted", "unknown")
PARTLY = "Not all was erased; do it again."


class NotErasable(Exception):
    """The person cannot be taken out yet, or not wholly; the message says why, and what to do."""


async def threads_of(kept: Database, customer: str) -> list[str]:
    """All threads of which anything of a customer is kept."""
    async with kept.connect() as db:
        return await _threads_of(db, customer)


async def erase(
    ledger: Ledger, threads: Sequence[str], by: str, customer: str = ""
) -> dict[str, int]:
    """Erases these threads, and a customer as well; how many rows of each table were.

    by: the member of staff, who also refuses what still waits for an approval. No turn may
    be going on in the threads. Raises NotErasable.
    """
    mine = _of(tables.actions, threads, customer)
    open_records = await ledger.records(mine, tables.actions.c.state.in_(OPEN))
    for record in open_records:
        _check_settled(await ledger.settle(record), "Nothing was erased.")
    if by in {customer, *(record.customer_id for record in open_records)}:
        raise NotErasable("A member of staff erases, never the customer. Nothing was erased.")
    await _forget_checkpoints(ledger.database, threads)
    try:
        async with ledger.database.begin() as db:
            erased = await _erase(db, threads, customer, by)
    except rows.Lost:
        raise NotErasable(f"Something has just changed. {PARTLY}") from None
    with ledger.database.problems():
        if ledger.database.file:
            await asyncio.to_thread(_scrub, ledger.database.file)
    return erased


async def _erase(
    db: AsyncConnection, threads: Sequence[str], customer: str, by: str
) -> dict[str, int]:
    if set(await _threads_of(db, customer) if customer else ()) - set(threads):
        raise rows.Lost  # a conversation has begun, behind whose door nobody stands
    records = await rows.read(db, _of(tables.actions, threads, customer))
    for record in records:
        _check_settled(record, PARTLY)
        await _keep_the_deed(db, record, by)
    c = tables.audit.c
    lines = _of(tables.audit, threads, customer) | c.key.in_([record.key for record in records])
    theirs = and_(c.by == c.customer_id, c.by != "")
    nobodys = {"customer_id": "", "thread_id": "", "by": case((theirs, tables.ERASED), else_=c.by)}
    erased = {"actions": len(records)}
    erased["audit"] = (await db.execute(update(tables.audit).where(lines).values(nobodys))).rowcount
    for table in WITH_THE_PERSON:
        gone = await db.execute(delete(table).where(_of(table, threads, customer)))
        erased[table.name] = gone.rowcount
    if any(erased.values()):
        await rows.note(db, "erased", by)
    return erased


async def _keep_the_deed(db: AsyncConnection, record: Record, by: str) -> None:
    """Raises Lost. The version is another afterwards: whoever holds the record writes nothing."""
    if record.state == "waiting":
        record = await rows.move(db, record, by, state="refused", decided_by=by)
    c = tables.actions.c
    this = (c.key == record.key) & (c.version == record.version)
    left = {
        **dict.fromkeys(("customer_id", "thread_id", "call", "reason"), ""),
        "version": record.version + 1,
        "changed_at": now(),
        "arguments": _deed(record.arguments, record.subject),
        "receipt": record.receipt and _deed(record.receipt, record.subject),
        "error": record.error and {**record.error, "message": ""},
    }
    if (await db.execute(update(tables.actions).where(this).values(left))).rowcount != 1:
        raise rows.Lost


def _deed(values: Mapping[str, Any], subject: str) -> dict[str, Any]:
    """What was done to what, for how much; any other text stands empty."""
    told = {
        name: value
        for name, value in values.items()
        if name in KEPT or value == subject or not isinstance(value, str | list | dict)
    }
    return dict.fromkeys(values, "") | told


def _check_settled(record: Record, erased: str) -> None:
    if record.is_claimed or record.state == "unknown":
        about = f"{record.tool} {record.subject}".strip()
        raise NotErasable(
            f"It is not known yet what became of {about}, so it has to stay on record. {erased}"
            " Settle it first: it is looked up again each time that this is tried."
        )


async def _threads_of(db: AsyncConnection, customer: str) -> list[str]:
    found: set[str] = set()
    for table in (tables.threads, tables.actions, tables.audit, tables.tickets):
        query = select(table.c.thread_id).where(table.c.customer_id == customer)
        found.update(await db.scalars(query))
    return sorted(found - {""})


def _of(table: Table, threads: Sequence[str], customer: str) -> ColumnElement[bool]:
    """The rows of the threads, and the customer's. An empty id is nobody's."""
    of_threads = table.c.thread_id.in_(threads)
    if not customer or "customer_id" not in table.c:
        return of_threads
    return of_threads | (table.c.customer_id == customer)


async def _forget_checkpoints(kept: Database, threads: Sequence[str]) -> None:
    async with open_saver(kept) as saver:
        for thread in threads:
            await saver.adelete_thread(thread)


def _scrub(file: str) -> None:
    """Takes deleted text out of the file itself, where SQLite leaves it in free space.

    `secure_delete` empties what its own connection deletes; pages keep what others left when rows
    grew or moved. VACUUM writes the file anew; the older pages go with the write-ahead log.
    """
    patience = database.BUSY_SECONDS
    with closing(sqlite3.connect(file, timeout=patience, isolation_level=None)) as connection:
        try:
            connection.execute("VACUUM")
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError:
            busy = True
    if busy:
        raise NotErasable(
            "It is erased, but the file may still hold deleted text: another program uses the"
            " database, or there is no room to write it anew. Do it again."
        )
