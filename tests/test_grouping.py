"""What is written at the same time shares a commit, and is as safe as with one of its own."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from agent.checkpoints import open_saver
from tests.turns import config_of
from tools.database import Database, DatabaseProblem, NoRoom

CHECKPOINT: Any = {"v": 4, "id": "1", "ts": "", "channel_values": {}, "channel_versions": {}}
PUT_AND_SAY_SO = """
import asyncio, sys
from agent.checkpoints import open_saver
from agent.store import open_database
from tests.test_grouping import put

async def main():
    async with open_saver(open_database(sys.argv[1])) as saver:
        async def one_by_one(thread):
            for number in range(1000):
                await put(saver, f"{thread}-{number}")
                print(f"{thread}-{number}", flush=True)
        await asyncio.gather(*map(one_by_one, range(20)))

asyncio.run(main())
"""


def _config(thread: str) -> Any:
    return config_of(thread, checkpoint_ns="", checkpoint_id="1")


async def put(saver: Any, thread: str, value: Any = "said") -> None:
    """A checkpoint, and what a task wrote after it, both at once."""
    wrote = saver.aput_writes(_config(thread), [("first", 1), ("second", value)], "task")
    await asyncio.gather(saver.aput(_config(thread), CHECKPOINT, {}, {}), wrote)


def _rows(file: str, query: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as connection:
        return [row[0] for row in connection.execute(query)]


@pytest.fixture
async def noted(tmp_path: Path) -> AsyncIterator[Database]:
    """A database with a table of notes, none twice."""
    opened = Database(f"sqlite:///{tmp_path / 'notes.db'}", branches=[])
    async with opened.begin() as db:
        await db.execute(text("CREATE TABLE notes (note TEXT PRIMARY KEY)"))
    yield opened
    await opened.close()


def _note(db: Connection, what: str) -> str:
    db.execute(text("INSERT INTO notes VALUES (:note)"), {"note": what})
    return what


async def _notes(database: Database) -> list[str]:
    async with database.connect() as db:
        return [*await db.scalars(text("SELECT note FROM notes ORDER BY note"))]


def test_what_was_put_is_there_after_the_process_was_killed(database_url: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", PUT_AND_SAY_SO, database_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(200)]
        process.kill()
        said += [line.strip() for line in process.stdout if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL
    file = database_url.removeprefix("sqlite:///")
    assert {*said} <= {*_rows(file, "SELECT thread_id FROM checkpoints")}
    assert {*said} <= {*_rows(file, "SELECT thread_id FROM writes WHERE channel = 'second'")}


async def test_a_put_that_fails_leaves_its_neighbours_alone(database: Database) -> None:
    async with open_saver(database) as saver:
        puts = [put(saver, f"t{n}", object() if n == 7 else n) for n in range(20)]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        kept = [await saver.aget_tuple(config_of(f"t{n}")) for n in range(20)]
    assert [n for n, outcome in enumerate(outcomes) if outcome] == [7]
    assert [n for n, each in enumerate(kept) if not each.pending_writes] == [7]


async def test_what_is_written_at_once_shares_a_commit(noted: Database) -> None:
    def write(db: Connection, n: int) -> int:
        _note(db, str(n))
        return id(db)

    async with noted.begin():  # while somebody writes, they gather
        writes = [asyncio.create_task(noted.write(partial(write, n=n))) for n in range(9)]
        await asyncio.sleep(0)
    assert len(set(await asyncio.gather(*writes))) == 1
    assert len(await _notes(noted)) == 9


async def test_work_that_fails_is_rolled_back_alone(noted: Database) -> None:
    def twice(db: Connection) -> None:
        _note(db, "c")
        _note(db, "a")

    works: list[Any] = [partial(_note, what="a"), twice, partial(_note, what="b")]
    first, second, third = await asyncio.gather(*map(noted.write, works), return_exceptions=True)
    assert (first, type(second), third) == ("a", IntegrityError, "b")
    assert await _notes(noted) == ["a", "b"]


async def test_what_is_cancelled_before_its_commit_is_not_written_and_ends_nobody_elses(
    noted: Database,
) -> None:
    async with noted.begin():
        tasks = [asyncio.create_task(noted.write(partial(_note, what=n))) for n in "abc"]
        await asyncio.sleep(0)
        tasks[0].cancel()
    assert await asyncio.gather(*tasks[1:]) == ["b", "c"]
    assert await _notes(noted) == ["b", "c"]


async def test_where_the_disk_is_full_nobody_is_told_that_it_was_written(noted: Database) -> None:
    def fill(db: Connection) -> None:
        db.execute(text("PRAGMA max_page_count = 1"))
        db.execute(text("INSERT INTO notes VALUES (hex(randomblob(99999)))"))

    works: list[Any] = [partial(_note, what="a"), fill, partial(_note, what="b")]
    outcomes = await asyncio.gather(*map(noted.write, works), return_exceptions=True)
    kept = await _notes(noted)
    told = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert told == kept
    assert isinstance(outcomes[1], NoRoom)


async def test_a_locked_file_is_said_to_be_so_to_all_who_wait(
    noted: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.database.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(tmp_path / "notes.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        fresh = Database(f"sqlite:///{tmp_path / 'notes.db'}", branches=[])
        works = [fresh.write(partial(_note, what=n)) for n in "ab"]
        outcomes = await asyncio.gather(*works, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [DatabaseProblem] * 2
    await fresh.close()


async def test_a_write_inside_a_transaction_is_refused(noted: Database) -> None:
    with pytest.raises(RuntimeError, match="use the outer connection"):
        async with noted.begin():
            await noted.write(partial(_note, what="a"))


def test_a_loop_that_ends_in_the_middle_of_a_write_leaves_it_whole(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'notes.db'}", branches=[])
    begun = threading.Event()
    wrote = []

    def pair(db: Connection) -> None:
        _note(db, "half 1")
        begun.set()
        time.sleep(0.2)
        _note(db, "half 2")

    async def tidy_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            wrote.append(await database.write(partial(_note, what="other")))

    async def main() -> list[Any]:
        async with database.begin() as db:
            await db.execute(text("CREATE TABLE notes (note TEXT PRIMARY KEY)"))
        tasks = [asyncio.create_task(work) for work in (database.write(pair), tidy_up())]
        await asyncio.to_thread(begun.wait)
        return tasks

    asyncio.run(main())
    assert wrote == ["other"]
    kept = _rows(str(tmp_path / "notes.db"), "SELECT note FROM notes ORDER BY note")
    assert kept == ["half 1", "half 2", "other"]


async def test_work_that_ends_the_thread_is_told_and_its_neighbour_written(noted: Database) -> None:
    def leave(_: Connection) -> None:
        raise SystemExit

    works: list[Any] = [leave, partial(_note, what="a")]
    first, second = await asyncio.gather(*map(noted.write, works), return_exceptions=True)
    assert (type(first), second) == (RuntimeError, "a")


async def test_whoever_waits_hears_that_no_thread_is_to_be_had(noted: Database) -> None:
    await noted.write(partial(_note, what="a"))
    loop, ended = asyncio.get_running_loop(), ThreadPoolExecutor()
    ended.shutdown()
    loop.set_default_executor(ended)
    with pytest.raises(RuntimeError, match="shutdown"):
        await noted.write(partial(_note, what="b"))
    loop.set_default_executor(ThreadPoolExecutor())
