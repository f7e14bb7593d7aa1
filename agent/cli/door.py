"""One turn at a time in a thread, for all commands on a database."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b

from agent.problems import Problem
from tools.database import Database

PATIENCE = 60.0  # seconds


@asynccontextmanager
async def door(database: Database, *threads: str) -> AsyncIterator[None]:
    """Waits until no other command answers in the threads, and keeps others out.

    Raises Problem when the wait is too long, or a file for it cannot be opened.
    """
    file = database.file
    lock = _beside(file, threads) if file else database.lock(*map("turn in {}".format, threads))
    async with AsyncExitStack() as inside:
        try:
            async with asyncio.timeout(PATIENCE):
                await inside.enter_async_context(lock)
        except TimeoutError:
            raise Problem("Another command is answering in this thread. Try again.") from None
        yield


@asynccontextmanager
async def _beside(database_file: str, threads: Sequence[str]) -> AsyncIterator[None]:
    """Locks on bytes of a file, one a thread: they end with the process, however that ends."""
    name = f"{database_file}-turns"
    try:
        file = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise Problem(f"{name} cannot be opened ({error.strerror}). Nothing was asked.") from None
    try:
        for place in sorted(map(_place, threads)):
            while not _locked(file, place):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        yield
    finally:
        os.close(file)


def _place(thread: str) -> int:
    return int.from_bytes(blake2b(thread.encode(), digest_size=7).digest())


def _locked(file: int, place: int) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except BlockingIOError:
        return False
    return True
