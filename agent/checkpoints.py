"""Where the command line keeps a graph's checkpoints: in the database of the shop and the journal.

On a LangGraph server the server keeps them.
"""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Any

from sqlalchemy import text

from tools.database import BUSY_SECONDS, Database


@asynccontextmanager
async def open_saver(database: Database) -> AsyncIterator[Any]:
    """The saver that fits the database, its tables made where they are missing; closed at the end.

    Raises DatabaseProblem.
    """
    await database.prepare()
    opened = _in_file(database, database.file) if database.file else _on_server(database)
    with database.problems():
        async with opened as saver:
            yield saver


@asynccontextmanager
async def _in_file(database: Database, file: str) -> AsyncIterator[Any]:
    import aiosqlite
    from langgraph.checkpoint.sqlite import SqliteSaver

    from agent.grouped_saver import GroupedSaver

    async with aiosqlite.connect(file, timeout=BUSY_SECONDS) as connection:
        opening = partial(sqlite3.connect, file, timeout=BUSY_SECONDS, check_same_thread=False)
        with closing(await asyncio.to_thread(opening)) as reading, ThreadPoolExecutor(1) as thread:
            reader = SqliteSaver(reading)
            saver = GroupedSaver(connection, database, reader, thread)
            await saver.setup()
            reader.is_setup = True  # just now: it does not need the file's lock for that
            yield saver


@asynccontextmanager
async def _on_server(database: Database) -> AsyncIterator[Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    # Its failures reach a person as what the waiting statement raises.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    # The saver makes one statement at a time; a pool replaces the connection when it is lost.
    pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
        kwargs={**database.address, "autocommit": True, "row_factory": dict_row},
        min_size=1,
        max_size=2,
        timeout=BUSY_SECONDS,
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    async with pool:
        saver = AsyncPostgresSaver(pool)
        if not await _has_tables(database, len(saver.MIGRATIONS)):
            async with database.lock("checkpoints"):
                await saver.setup()
        yield saver


async def _has_tables(database: Database, steps: int) -> bool:
    """Asked first, because setting up takes a right that who serves customers need not have."""
    async with database.connect() as db:
        if await db.scalar(text("SELECT to_regclass('checkpoint_migrations')")) is None:
            return False
        done = await db.scalar(text("SELECT max(v) FROM checkpoint_migrations"))
    return done is not None and int(done) >= steps - 1
