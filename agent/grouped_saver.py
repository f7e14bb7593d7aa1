"""LangGraph's SQLite saver for many conversations at once.

What they put shares commits, the journal's too, since both write through `Database.write`. What
they read is read whole in one thread: aiosqlite goes back and forth for each row.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from sqlalchemy import Connection

from tools.database import Database
from tools.grouping import raw


class GroupedSaver(AsyncSqliteSaver):
    """Its tables have to be there."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        database: Database,
        reader: SqliteSaver,
        thread: Executor,
    ) -> None:
        """reader: has a connection of its own to the same file; used in `thread` only."""
        super().__init__(connection)
        self._database, self._reader, self._thread = database, reader, thread

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        return await self._read(partial(self._reader.get_tuple, config))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Any:
        history = self._reader.get_delta_channel_history
        return await self._read(partial(history, config=config, channels=channels))

    async def aput(self, *what: Any, **named: Any) -> Any:
        return await self._database.write(lambda db: self._in(db).put(*what, **named))

    async def aput_writes(self, *what: Any, **named: Any) -> None:
        await self._database.write(lambda db: self._in(db).put_writes(*what, **named))

    async def _read(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _in(self, db: Connection) -> "_Uncommitted":
        return _Uncommitted(raw(db), serde=self.serde)


class _Uncommitted(SqliteSaver):
    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """The saver's own sets its tables up and commits."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor
