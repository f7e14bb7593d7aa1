"""LangGraph's SQLite saver for many conversations at once: what they put shares commits.

The journal's commits too, since both write through `Database.write`.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import aiosqlite
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from sqlalchemy import Connection

from tools.database import Database
from tools.grouping import raw


class GroupedSaver(AsyncSqliteSaver):
    """Reads as AsyncSqliteSaver does; its tables have to be there."""

    def __init__(self, connection: aiosqlite.Connection, database: Database) -> None:
        super().__init__(connection)
        self._database = database

    async def aput(self, *what: Any, **named: Any) -> Any:
        return await self._database.write(lambda db: self._in(db).put(*what, **named))

    async def aput_writes(self, *what: Any, **named: Any) -> None:
        await self._database.write(lambda db: self._in(db).put_writes(*what, **named))

    def _in(self, db: Connection) -> "_Uncommitted":
        return _Uncommitted(raw(db), serde=self.serde)


class _Uncommitted(SqliteSaver):
    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """The saver's own sets its tables up and commits."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor
