"""One turn at a time in a thread, for all commands of this machine."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b

from agent.problems import Problem

PATIENCE = 60.0  # seconds


@asynccontextmanager
async def door(database_file: str, thread: str) -> AsyncIterator[None]:
    """Waits until no other command answers in the thread, and keeps others out.

    A lock on one byte of a file beside the database: it ends with the process, however that ends.
    Raises Problem when the wait is too long, or the file cannot be opened.
    """
    place = int.from_bytes(blake2b(thread.encode(), digest_size=7).digest())
    name = f"{database_file}-turns"
    try:
        file = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise Problem(f"{name} cannot be opened ({error.strerror}). Nothing was asked.") from None
    try:
        await _locked(file, place)
        yield
    finally:
        os.close(file)


async def _locked(file: int, place: int) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            return
        except BlockingIOError:
            if asyncio.get_running_loop().time() > deadline:
                raise Problem("Another command is answering in this thread. Try again.") from None
            await asyncio.sleep(0.05)
