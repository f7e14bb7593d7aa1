"""The one database: where it is, that its tables are there, how it is read and written.

`Database(url, branches=…)` opens nothing. The first use prepares it: Alembic brings each branch
(the shop's tables, the agent's) to its newest revision, a new SQLite file also gets the branches'
first data. On SQLite all of that is one transaction, so a process that is killed in it leaves an
empty file, and of two that begin together one waits for the other.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool, StaticPool

from tools import database_problems
from tools.database_problems import DatabaseProblem, NoRoom
from tools.grouping import Group
from tools.migrating import Branch, migrate

__all__ = ["Branch", "Database", "DatabaseProblem", "NoRoom"]

_Done = TypeVar("_Done")
BUSY_SECONDS = 10
CONNECTIONS = 20  # to a server, of one process at most

# The choice of the database is made here; elsewhere ask `connection.dialect.name`.
_DRIVERS = {
    "sqlite": ("sqlite", "sqlite+aiosqlite"),
    "postgresql": ("postgresql+psycopg", "postgresql+psycopg"),
}


@dataclass
class _Loop:
    """What belongs to one event loop: asyncio's objects must not be shared between two."""

    engine: AsyncEngine
    # Who writes may have to read beside it, so that fewer write than there are connections.
    # SQLite lets one writer in and the others poll, unfairly; within a process they queue instead.
    writer: asyncio.Lock | asyncio.Semaphore
    writing: set[asyncio.Task[Any] | None] = field(default_factory=set)
    group: Group | None = None  # of SQLite


class Database:
    """`url` is `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://…`.

    All methods raise DatabaseProblem where the database cannot be used.
    """

    def __init__(self, url: str, *, branches: Sequence[Branch]) -> None:
        self._url = _read_url(url)
        self._branches = branches
        self._prepared = False
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()

    async def prepare(self, *, demo: bool = True) -> None:
        """Creates what is missing. A new SQLite file gets the demo shop, unless `demo` is false."""
        if not self._prepared:
            await asyncio.to_thread(self._prepare, demo)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A connection for reading; what it writes is rolled back."""
        here = await self._here()
        with self.problems():
            async with here.engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """One write transaction, committed at the end, rolled back by an exception.

        Transactions do not nest: a second one in the same task raises RuntimeError.
        """
        here = await self._here()
        with self.problems():
            async with _writing(here), here.engine.connect() as connection:
                await connection.execution_options(begin="BEGIN IMMEDIATE")
                async with connection.begin():
                    yield connection

    async def write(self, work: Callable[[Connection], _Done]) -> _Done:
        """A whole write transaction: what `work` returns, once it is committed.

        On SQLite it runs in a thread, perhaps more than once, and shares its commit with what is
        written at the same time.
        """
        here = await self._here()
        with self.problems():
            if here.group is None:
                async with self.begin() as connection:
                    return await connection.run_sync(work)
            _check_outermost(here)
            done: _Done = await here.group.write(work)
            return done

    @contextmanager
    def problems(self) -> Iterator[None]:
        """Says what SQLAlchemy or a driver finds wrong with this database as a DatabaseProblem."""
        try:
            yield
        except database_problems.errors() as error:
            if problem := database_problems.problem(self._url, error):
                raise problem from error
            raise

    @property
    def file(self) -> str | None:
        """SQLite's file; None where a server has the database."""
        return self._url.database if self._is_sqlite else None

    @property
    def address(self) -> dict[str, Any]:
        """How psycopg opens a connection to the server: keyword arguments, password included."""
        _, arguments = _engine(self._url, create_engine).dialect.create_connect_args(self._url)
        del arguments["context"]  # SQLAlchemy's own way to read values
        return {**arguments, **_patient(self._url)}

    @asynccontextmanager
    async def lock(self, *names: str) -> AsyncIterator[None]:
        """On a server: waits until nobody holds the names, and holds them; they end with it.

        Asks again and again: a statement that waits would hold up the making of indexes.
        """
        here = await self._here()
        with self.problems():
            async with here.engine.connect() as connection:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                try:
                    for name in sorted(names):
                        take = select(func.pg_try_advisory_lock(func.hashtextextended(name, 1)))
                        while not await connection.scalar(take):  # noqa: ASYNC110
                            await asyncio.sleep(0.05)
                    yield
                finally:
                    await connection.invalidate()  # it ends, and its locks with it

    async def close(self) -> None:
        """Closes what the running event loop has open. The next use opens it again."""
        if here := self._loops.pop(asyncio.get_running_loop(), None):
            if here.group is not None:
                await here.group.close()
            await here.engine.dispose()

    @property
    def _is_sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    async def _here(self) -> _Loop:
        await self.prepare()
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            # In a thread: SQLAlchemy asks the file system, which a LangGraph server refuses here.
            engine = await asyncio.to_thread(_engine, self._url, create_async_engine)
            made = _Loop(engine, asyncio.Semaphore(CONNECTIONS // 2))
            if self._is_sqlite:
                made.writer = asyncio.Lock()
                # Kept open: a new connection reads the schema, and prepares each statement, anew.
                kept = partial(_engine, self._url, create_engine, poolclass=StaticPool)
                made.group = Group(await asyncio.to_thread(kept), made.writer)
            self._loops.setdefault(loop, made)  # the first of several tasks stays
        return self._loops[loop]

    def _prepare(self, demo: bool) -> None:
        # One at a time in a process: Alembic's `op` is a global.
        with _preparing, self.problems():
            if self._prepared:
                return
            if self._is_sqlite:
                file = str(Path(self._url.database or "").absolute())
                self._url = self._url.set(database=file)
                if os.path.exists(file) and not os.path.isfile(file):
                    raise sqlite3.OperationalError("unable to open")
            engine = _engine(self._url, create_engine)
            try:
                migrate(engine, self._branches, demo=demo, patience=BUSY_SECONDS)
            finally:
                engine.dispose()
            self._prepared = True


_preparing = threading.Lock()
_Engine = TypeVar("_Engine", Engine, AsyncEngine)


def _read_url(url: str) -> URL:
    with suppress(ArgumentError, ValueError):  # the latter for a port that is no number
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        named = not (parsed.database or ":memory:").startswith((":memory:", "file:"))
        plain = named and not parsed.query
        if backend in _DRIVERS and (plain or backend != "sqlite"):
            return parsed
    raise DatabaseProblem(
        "The database URL cannot be used: it names no file and no server that is known here. "
        "Write sqlite:///FILE or postgresql://…. Nothing was opened."
    )


def _engine(url: URL, create: Callable[..., _Engine], **options: Any) -> _Engine:
    driver = _DRIVERS[url.get_backend_name()][create is create_async_engine]
    try:
        engine = create(url.set(drivername=driver), **{**_options(url), **options})
    except ModuleNotFoundError as error:
        problem = f"The database needs the package {error.name}; install it."
        raise DatabaseProblem(problem) from error
    _listen(engine if isinstance(engine, Engine) else engine.sync_engine)
    return engine


def _options(url: URL) -> dict[str, Any]:
    if url.get_backend_name() == "sqlite":
        # No pool: a connection left in one outlives its event loop, with its thread.
        # Without an isolation level sqlite3 emits no BEGIN of its own, and DDL is transactional.
        arguments = {"timeout": BUSY_SECONDS, "isolation_level": None}
        return {"poolclass": NullPool, "connect_args": arguments}
    # Read committed, whatever the server's own default: who waited for a lock sees what the other
    # did. Each connection is tried before it is used: the server may have been started again.
    pool = {
        "pool_pre_ping": True,
        "max_overflow": 0,
        "pool_size": CONNECTIONS,
        "pool_timeout": BUSY_SECONDS,
    }
    return {"connect_args": _patient(url), "isolation_level": "READ COMMITTED", **pool}


def _patient(url: URL) -> dict[str, Any]:
    return {"connect_timeout": url.query.get("connect_timeout", BUSY_SECONDS)}


def _listen(engine: Engine) -> None:
    sqlite = engine.dialect.name == "sqlite"
    on_server = f"SET lock_timeout = '{BUSY_SECONDS}s'"
    setting = "PRAGMA foreign_keys = ON" if sqlite else on_server

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(setting)
        cursor.close()
        connection.commit()  # a setting that is rolled back is none

    if sqlite:

        @event.listens_for(engine, "invalidate")
        def give_up(connection: Any, _record: object, _error: object) -> None:
            # SQLAlchemy closes what a cancelled statement ran on; while a result of it lives,
            # SQLite keeps the closed connection's transaction, and every other writer out.
            connection.rollback()

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


@asynccontextmanager
async def _writing(here: _Loop) -> AsyncIterator[None]:
    task = _check_outermost(here)
    here.writing.add(task)
    try:
        async with here.writer:
            yield
    finally:
        here.writing.discard(task)


def _check_outermost(here: _Loop) -> asyncio.Task[Any] | None:
    task = asyncio.current_task()
    if task in here.writing:
        raise RuntimeError("Database.begin() inside Database.begin(): use the outer connection.")
    return task
