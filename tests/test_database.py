"""The database file: made once, whole or not at all, read and written by many."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

import tools.database
from tools.database import Branch, Database, DatabaseProblem, NoRoom
from tools.shop.migrations import SHOP_BRANCH
from tools.shop.tables import metadata

DEMO_ORDERS = 41


def _database(file: Path, *branches: Branch) -> Database:
    return Database(f"sqlite:///{file}", branches=branches or [SHOP_BRANCH])


def _count(file: Path, table: str = "orders") -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _python(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


PREPARE = """
import asyncio, sys
from sqlalchemy import text
from tools.database import Database
from tools.shop.migrations import SHOP_BRANCH

async def main():
    database = Database(f"sqlite:///{sys.argv[1]}", branches=[SHOP_BRANCH])
    async with database.connect() as connection:
        print(await connection.scalar(text("SELECT count(*) FROM orders")))

asyncio.run(main())
print("alembic" in sys.modules)
"""

KILLED = """
import asyncio, os, signal, sys
from dataclasses import replace
from tools.database import Database
from tools.shop.migrations import SHOP_BRANCH

def seed(connection):
    SHOP_BRANCH.seed(connection)
    os.kill(os.getpid(), signal.SIGKILL)

branch = replace(SHOP_BRANCH, seed=seed)
asyncio.run(Database(f"sqlite:///{sys.argv[1]}", branches=[branch]).prepare())
"""


async def test_a_new_file_gets_tables_and_the_demo_shop(tmp_path: Path) -> None:
    await _database(tmp_path / "new.db").prepare()
    assert _count(tmp_path / "new.db") == DEMO_ORDERS
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_new_file_can_begin_empty(tmp_path: Path) -> None:
    await _database(tmp_path / "new.db").prepare(demo=False)
    await _database(tmp_path / "new.db").prepare()
    assert _count(tmp_path / "new.db") == 0


async def test_preparing_again_brings_nothing_back(tmp_path: Path) -> None:
    database = _database(tmp_path / "new.db")
    async with database.begin() as connection:
        await connection.execute(text("DELETE FROM orders WHERE order_id = 'A'"))
    await _database(tmp_path / "new.db").prepare()
    assert _count(tmp_path / "new.db") == DEMO_ORDERS - 1
    assert _count(tmp_path / "new.db", "order_items WHERE order_id = 'A'") == 0


def test_processes_that_begin_together_make_one_shop(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    processes = [_python(PREPARE, file) for _ in range(6)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (err, out.split()[0]) == ("", str(DEMO_ORDERS))
    assert _count(file) == DEMO_ORDERS


def test_alembic_is_not_imported_where_nothing_is_to_do(tmp_path: Path) -> None:
    said = [_python(PREPARE, tmp_path / "new.db").communicate(timeout=60)[0] for _ in range(2)]
    assert [out.split()[1] for out in said] == ["True", "False"]


async def test_a_process_killed_while_it_creates_leaves_nothing_half_done(tmp_path: Path) -> None:
    file = tmp_path / "new.db"
    killed = _python(KILLED, file)
    await asyncio.to_thread(killed.communicate, timeout=60)
    assert killed.returncode == -9
    assert _count(file, "sqlite_master") == 0
    await _database(file).prepare()
    assert _count(file) == DEMO_ORDERS


async def test_a_seed_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fails(_connection: object) -> None:
        raise RuntimeError("no")

    file = tmp_path / "new.db"
    with pytest.raises(RuntimeError):
        await _database(file, Branch("shop", SHOP_BRANCH.folder, seed=fails)).prepare()
    assert _count(file, "sqlite_master") == 0


async def test_a_branch_that_comes_later_is_added(tmp_path: Path) -> None:
    (tmp_path / "0001_notes.py").write_text(
        "from alembic import op\n"
        "revision, down_revision, branch_labels, depends_on = '0001', None, None, None\n"
        "def upgrade():\n    op.execute('CREATE TABLE notes (note TEXT)')\n"
    )
    file = tmp_path / "shop.db"
    await _database(file).prepare(demo=False)
    await _database(file, SHOP_BRANCH, Branch("notes", tmp_path)).prepare()
    assert (_count(file, "notes"), _count(file), _count(file, "notes_version")) == (0, 0, 1)


async def test_a_migration_that_comes_later_is_run_and_keeps_the_orders(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(SHOP_BRANCH.folder, folder)
    file = tmp_path / "shop.db"
    await _database(file, Branch("shop", folder, SHOP_BRANCH.seed)).prepare()
    (folder / "9999_gift.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision = '9999', '{SHOP_BRANCH.revisions[-1]}'\n"
        "branch_labels, depends_on = None, None\n"
        "def upgrade():\n    op.add_column('orders', sa.Column('gift', sa.Text()))\n"
    )
    await _database(file, Branch("shop", folder, SHOP_BRANCH.seed)).prepare()
    assert _count(file, "orders WHERE gift IS NULL") == DEMO_ORDERS


async def test_the_file_names_say_the_history_and_it_makes_the_tables(tmp_path: Path) -> None:
    folder = str(SHOP_BRANCH.folder)
    history = ScriptDirectory(folder, version_locations=[folder]).walk_revisions()
    assert [step.revision for step in history] == SHOP_BRANCH.revisions[::-1]
    await _database(tmp_path / "new.db").prepare()
    engine = create_engine(f"sqlite:///{tmp_path}/new.db")
    with engine.connect() as connection:
        options = {"version_table": SHOP_BRANCH.version_table}
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        )
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://root@localhost/shop", "sqlite:///FILE or postgresql"),
        ("not a url", "sqlite:///FILE or postgresql"),
        ("", "sqlite:///FILE or postgresql"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
    ],
)
def test_an_url_that_cannot_be_served_is_refused(url: str, said: str) -> None:
    with pytest.raises(DatabaseProblem, match=said):
        Database(url, branches=[SHOP_BRANCH])


async def _refusal(database: Database) -> str:
    with pytest.raises(DatabaseProblem) as refused:
        async with database.connect():
            pass
    assert "\n" not in str(refused.value)
    return str(refused.value)


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("Dear diary, " * 500)
    assert "is not a SQLite database; nothing was changed" in await _refusal(_database(file))
    assert file.read_text() == "Dear diary, " * 500


async def test_a_damaged_database_is_said_to_be_so(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    await _database(file).prepare()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\x07" * (len(content) - 4096))
    assert "damaged" in await _refusal(_database(file))


async def _fill(database: Database) -> None:
    async with database.begin() as connection:
        await connection.execute(text("PRAGMA max_page_count = 1"))  # not fewer than there are
        await connection.execute(text("UPDATE counter SET n = 9"))
        await connection.execute(text("CREATE TABLE more AS SELECT zeroblob(100000)"))


async def test_what_does_not_fit_on_the_disk_is_said_to_be_so(counter: Database) -> None:
    with pytest.raises(NoRoom, match="disk is full"):
        await _fill(counter)
    assert await _read(counter) == 0


async def test_a_directory_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe" in await _refusal(_database(tmp_path / "pipe"))
    assert f"{tmp_path} cannot be opened: it is a directory" in await _refusal(_database(tmp_path))
    missing = tmp_path / "nowhere" / "shop.db"
    assert "its folder is missing" in await _refusal(_database(missing))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o500)
    assert "read-only" in await _refusal(_database(tmp_path / "shop.db"))


async def test_a_locked_database_is_said_to_be_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools.database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "in use by another program" in await _refusal(_database(tmp_path / "new.db"))
        other.execute("ROLLBACK")
        database = _database(tmp_path / "new.db")
        await database.prepare()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseProblem, match="in use by another program"):
            async with database.begin():
                pass
        other.execute("ROLLBACK")


async def test_a_newer_schema_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    await _database(file).prepare()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE shop_version SET version_num = '9999'")
        connection.commit()
    assert "made by a newer version" in await _refusal(_database(file))


@pytest.mark.parametrize("table", ["orders", "photos", "checkpoints"])
async def test_a_file_of_another_program_is_left_as_it_is(tmp_path: Path, table: str) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {table} (x)")
    before = file.read_bytes()
    assert "another program's" in await _refusal(_database(file))
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["other.db"]


async def test_a_relative_file_stays_where_it_was_first_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database("sqlite:///shop.db", branches=[SHOP_BRANCH])
    await database.prepare()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with database.connect() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM orders")) == DEMO_ORDERS


@pytest.fixture
def counter(tmp_path: Path) -> Database:
    database = _database(tmp_path / "counter.db")

    async def create() -> None:
        async with database.begin() as connection:
            await connection.execute(text("CREATE TABLE counter AS SELECT 0 AS n"))

    asyncio.run(create())
    return database


async def _add(database: Database, first: asyncio.Event | None = None) -> None:
    async with database.begin() as connection:
        n = await connection.scalar(text("SELECT n FROM counter"))
        if first:
            first.set()
            await asyncio.sleep(60)
        await connection.execute(text("UPDATE counter SET n = :n"), {"n": n + 1})


async def _read(database: Database) -> int:
    async with database.connect() as connection:
        return int(await connection.scalar(text("SELECT n FROM counter")) or 0)


async def test_no_write_is_lost_among_many_tasks_and_databases(
    counter: Database, tmp_path: Path
) -> None:
    other = _database(tmp_path / "counter.db")
    await asyncio.gather(*(_add(counter) for _ in range(40)), *(_add(other) for _ in range(40)))
    assert await _read(counter) == 80


async def test_a_transaction_takes_the_write_lock_at_its_beginning(
    counter: Database, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "counter.db", timeout=0)) as other:
        async with counter.begin():
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            assert other.execute("SELECT n FROM counter").fetchone() == (0,)


async def _add_and_fail(database: Database) -> None:
    async with database.begin() as connection:
        await connection.execute(text("UPDATE counter SET n = 7"))
        raise ZeroDivisionError


async def test_an_exception_rolls_back_and_a_reader_cannot_write(counter: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await _add_and_fail(counter)
    async with counter.connect() as connection:
        await connection.execute(text("UPDATE counter SET n = 8"))
    assert await _read(counter) == 0


async def test_a_cancelled_writer_leaves_nothing_and_lets_the_next_one_in(
    counter: Database,
) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(_add(counter, begun))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(_add(counter), timeout=5)
    assert await _read(counter) == 1


async def test_a_writer_cancelled_within_a_statement_keeps_nobody_out(
    counter: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.database.BUSY_SECONDS", 0.5)
    numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000000)"

    async def count(begun: asyncio.Event) -> None:
        async with counter.begin() as connection:
            begun.set()
            await connection.execute(text(f"{numbers} SELECT count(*) FROM n"))

    begun = asyncio.Event()
    task = asyncio.create_task(count(begun))
    await begun.wait()
    await asyncio.sleep(0.02)  # the statement is on its way
    task.cancel()
    ended = await asyncio.gather(task, return_exceptions=True)  # its traceback holds the result
    await _add(counter)
    assert (await _read(counter), len(ended)) == (1, 1)


async def _add_pair(database: Database, number: int) -> None:
    async with database.begin() as connection:
        for half in (1, 2):
            await connection.execute(text(f"INSERT INTO pairs VALUES ({number}, {half})"))


async def test_writers_cancelled_at_any_moment_wrote_all_or_nothing(counter: Database) -> None:
    async with counter.begin() as connection:
        await connection.execute(text("CREATE TABLE pairs (number INT, half INT)"))
    tasks = [asyncio.create_task(_add_pair(counter, number)) for number in range(60)]
    for number, task in enumerate(tasks):
        await asyncio.sleep(0.0007 * (number % 7))
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.wait_for(_add(counter), timeout=5)
    async with counter.connect() as connection:
        rows = await connection.execute(text("SELECT number, count(*) FROM pairs GROUP BY number"))
        written = {row[0]: row[1] for row in rows}
    assert set(written.values()) <= {2}
    # A task cancelled while it commits may have written; one that returned has.
    assert {number for number, end in enumerate(ended) if end is None} <= set(written)


async def test_a_transaction_inside_a_transaction_is_refused(counter: Database) -> None:
    async with counter.begin():
        with pytest.raises(RuntimeError, match="use the outer connection"):
            async with counter.begin():
                pass


def test_one_database_serves_several_event_loops(counter: Database) -> None:
    for _ in range(3):
        asyncio.run(_add(counter))
    assert asyncio.run(_read(counter)) == 3


def test_close_is_not_final_and_a_process_ends_without_it(tmp_path: Path) -> None:
    started = time.monotonic()
    process = _python(PREPARE, tmp_path / "new.db")
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert time.monotonic() - started < 20

    async def close_and_go_on() -> None:
        database = _database(tmp_path / "new.db")
        await database.close()
        await database.prepare()
        await database.close()
        async with database.connect() as connection:
            await connection.scalar(text("SELECT 1"))

    asyncio.run(close_and_go_on())


async def test_a_postgresql_that_cannot_be_used_is_named_without_its_password() -> None:
    database = Database("postgresql://shop:secret@127.0.0.1:1/shop", branches=[SHOP_BRANCH])
    refusal = await _refusal(database)
    assert "psycopg" in refusal or "127.0.0.1" in refusal
    assert "secret" not in refusal
