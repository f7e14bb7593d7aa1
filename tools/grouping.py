"""Write transactions of a SQLite file that share a commit.

A commit waits for the disk, for milliseconds, and SQLite makes one at a time. While one is under
way, what is asked next gathers, and the next commit takes all of it. Who asked is answered only
when it is on the disk; work that fails leaves its neighbours alone.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any

from sqlalchemy import Connection, Engine

Work = Callable[[Connection], Any]


class Group:
    """engine: has one connection, for threads. writer: whom the event loop lets write."""

    def __init__(self, engine: Engine, writer: asyncio.Lock) -> None:
        self._engine, self._writer = engine, writer
        self._waiting: list[tuple[Work, asyncio.Future[Any]]] = []
        self._committing: asyncio.Task[None] | None = None

    async def write(self, work: Work) -> Any:
        """What `work` returns, or raises, once that is committed."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((work, done))
        if self._committing is None or self._committing.done():
            # A task of its own: a caller who is cancelled does not end what others wait for.
            self._committing = asyncio.create_task(self._commit())
        return await done

    async def _commit(self) -> None:
        while self._waiting:
            async with self._writer:
                group = [(work, done) for work, done in self._waiting if not done.cancelled()]
                self._waiting = []
                works = [work for work, _ in group]
                outcomes = await self._in_thread(works)
            for (_, done), outcome in zip(group, outcomes, strict=True):
                if done.cancelled():
                    continue
                if isinstance(outcome, Exception):
                    done.set_exception(outcome)
                else:
                    done.set_result(outcome)

    async def _in_thread(self, works: Sequence[Work]) -> list[Any]:
        """Waits for the end in any case, for the connection has one transaction at a time."""
        try:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(None, _transact, self._engine, works)
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
            return running.result()
        except Exception as error:  # no thread is to be had: whoever waits must hear of it
            return [error] * len(works)

    async def close(self) -> None:
        """Once what is under way is written."""
        if self._committing is not None:
            await asyncio.wait([self._committing])
        await asyncio.to_thread(self._engine.dispose)


def raw(connection: Connection) -> sqlite3.Connection:
    """The driver's connection under SQLAlchemy's."""
    driver: Any = connection.connection.driver_connection
    return driver  # type: ignore[no-any-return]


def _transact(engine: Engine, works: Sequence[Work]) -> list[Any]:
    """Does all of it in one transaction: what each returned, or raised.

    Where one fails all are rolled back, and done again by themselves.
    """
    begun = False
    try:
        with closing(engine.connect()) as connection:
            connection.execution_options(begin="BEGIN IMMEDIATE")
            with connection.begin():
                begun = True
                return [work(connection) for work in works]
    except BaseException as error:
        if len(works) == 1 or not begun:
            is_usual = isinstance(error, Exception)
            return [error if is_usual else RuntimeError(type(error).__name__)] * len(works)
        return [outcome for work in works for outcome in _transact(engine, [work])]
