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
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

BUSY_SECONDS = 10

# The choice of the database is made here; elsewhere ask `connection.dialect.name`.
_DRIVERS = {
    "sqlite": ("sqlite", "sqlite+aiosqlite"),
    "postgresql": ("postgresql+psycopg", "postgresql+psycopg"),
}


_SENTENCES = {
    "not a database": "is not a SQLite database; nothing was changed. Move it away or name another",
    "malformed": "is damaged; restore it from a copy or name another",
    "unable to open": "cannot be opened: it is a directory, a pipe or a device, or its folder is"
    " missing or read-only",
    "readonly": "may only be read; nothing was written. Make it writable or name another",
    "locked": "is in use by another program; nothing was written. Try again in a moment",
}
_FULL = ("is full", "No space left", "disk I/O")  # the last also where a file may grow no more


class DatabaseProblem(Exception):
    """The database cannot be used. The message is for a person."""


class NoRoom(DatabaseProblem):
    """What was to be written does not fit on the disk."""


@dataclass(frozen=True)
class Branch:
    """One line of migrations with a version table of its own, `{name}_version`.

    `folder` holds Alembic's files, named `<revision>_<words>.py`; sorted by name they are in the
    order of the history. `seed` writes the first data of a new SQLite database.
    """

    name: str
    folder: Path
    seed: Callable[[Connection], None] | None = None

    @property
    def version_table(self) -> str:
        return f"{self.name}_version"

    @property
    def revisions(self) -> list[str]:
        """All that are known here, oldest first: from the file names, as Alembic imports slowly."""
        return sorted(path.name.split("_")[0] for path in self.folder.glob("[0-9]*_*.py"))


@dataclass
class _Loop:
    """What belongs to one event loop: asyncio's objects must not be shared between two."""

    engine: AsyncEngine
    # SQLite lets one writer in and the others poll, unfairly; within a process they queue instead.
    writer: asyncio.Lock = field(default_factory=asyncio.Lock)
    writing: asyncio.Task[Any] | None = None


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

        Transactions do not nest: on SQLite a second one in the same task raises RuntimeError.
        """
        here = await self._here()
        with self.problems():
            async with _writing(here), here.engine.connect() as connection:
                await connection.execution_options(begin="BEGIN IMMEDIATE")
                async with connection.begin():
                    yield connection

    @contextmanager
    def problems(self) -> Iterator[None]:
        """Says what SQLAlchemy or SQLite finds wrong with this database as a DatabaseProblem."""
        try:
            yield
        except (DatabaseError, sqlite3.DatabaseError) as error:
            if type(error).__name__ not in ("OperationalError", "DatabaseError"):
                raise  # IntegrityError and its like speak of the statement, not of the database
            sqlite = self._url.get_backend_name() == "sqlite"
            where = self._url.database if sqlite else self._url.render_as_string()
            said = str(getattr(error, "orig", error)).strip().split("\n")[0]
            if any(part in said for part in _FULL):
                raise NoRoom(
                    f"The database {where} has no room: its disk is full, or it may grow no more."
                    " What was under way was not written."
                ) from error
            what = next((s for part, s in _SENTENCES.items() if part in said), f"failed: {said}")
            raise DatabaseProblem(f"The database {where} {what}.") from error

    async def close(self) -> None:
        """Closes what the running event loop has open. The next use opens it again."""
        here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.engine.dispose()

    async def _here(self) -> _Loop:
        await self.prepare()
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            # In a thread: SQLAlchemy asks the file system, which a LangGraph server refuses here.
            engine = await asyncio.to_thread(_engine, self._url, create_async_engine)
            self._loops.setdefault(loop, _Loop(engine))  # the first of several tasks stays
        return self._loops[loop]

    def _prepare(self, demo: bool) -> None:
        # One at a time in a process: Alembic's `op` is a global.
        with _preparing, self.problems():
            if self._prepared:
                return
            if self._url.get_backend_name() == "sqlite":
                file = str(Path(self._url.database or "").absolute())
                self._url = self._url.set(database=file)
                if os.path.exists(file) and not os.path.isfile(file):
                    raise sqlite3.OperationalError("unable to open")
            engine = _engine(self._url, create_engine)
            try:
                _migrate(engine, self._branches, demo)
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


def _engine(url: URL, create: Callable[..., _Engine]) -> _Engine:
    sqlite = url.get_backend_name() == "sqlite"
    driver = _DRIVERS[url.get_backend_name()][create is create_async_engine]
    # No pool: a connection left in one outlives its event loop, with its thread.
    # Without an isolation level sqlite3 emits no BEGIN of its own, and DDL is transactional.
    arguments = {"timeout": BUSY_SECONDS, "isolation_level": None}
    options = {"poolclass": NullPool, "connect_args": arguments} if sqlite else {}
    try:
        engine = create(url.set(drivername=driver), **options)
    except ModuleNotFoundError as error:
        problem = f"The database needs the package {error.name}; install it."
        raise DatabaseProblem(problem) from error
    if sqlite:
        _listen(engine if isinstance(engine, Engine) else engine.sync_engine)
    return engine


def _listen(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


@asynccontextmanager
async def _writing(here: _Loop) -> AsyncIterator[None]:
    if here.engine.dialect.name != "sqlite":
        yield
        return
    if here.writing is asyncio.current_task():
        raise RuntimeError("Database.begin() inside Database.begin(): use the outer connection.")
    async with here.writer:
        here.writing = asyncio.current_task()
        try:
            yield
        finally:
            here.writing = None


def _migrate(engine: Engine, branches: Sequence[Branch], demo: bool) -> None:
    with engine.connect() as connection:
        if all(_revision(connection, b) == b.revisions[-1] for b in branches):
            return
    sqlite = engine.dialect.name == "sqlite"
    if sqlite:
        _refuse_anothers(engine, branches)
        _write_ahead(str(engine.url.database))
    immediate = engine.execution_options(begin="BEGIN IMMEDIATE")
    with immediate.begin() as connection:
        if not sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('migrations'))"))
        for branch in branches:
            new = _revision(connection, branch) is None
            _upgrade(connection, branch)
            if new and sqlite and demo and branch.seed:
                branch.seed(connection)


def _refuse_anothers(engine: Engine, branches: Sequence[Branch]) -> None:
    """A file is one program's; on a server the tables of several may lie side by side."""
    tables = set(inspect(engine).get_table_names())
    if tables and not tables & {branch.version_table for branch in branches}:
        raise DatabaseProblem(
            f"The database {engine.url.database} is another program's: it has tables, and none of"
            " ours. Nothing was changed; name another file."
        )


def _write_ahead(file: str) -> None:
    """Readers beside a writer. The switch does not wait for other processes by itself."""
    deadline = time.monotonic() + BUSY_SECONDS
    with closing(sqlite3.connect(file, timeout=BUSY_SECONDS)) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _revision(connection: Connection, branch: Branch) -> str | None:
    if not inspect(connection).has_table(branch.version_table):
        return None
    statement = text(f"SELECT version_num FROM {branch.version_table}")
    revision: str | None = connection.scalar(statement)
    if revision is not None and revision not in branch.revisions:
        raise DatabaseProblem(
            f"The database was made by a newer version of this program ({branch.name} schema "
            f"{revision}, known here up to {branch.revisions[-1]}). Nothing was changed; "
            "update the program or name another database."
        )
    return revision


def _upgrade(connection: Connection, branch: Branch) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(branch.folder), version_locations=[str(branch.folder)])

    def steps(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=branch.version_table)
        environment.run_migrations()
