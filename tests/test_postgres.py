"""The database on a PostgreSQL server: made once, used by many, and what it finds wrong."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, make_url, text

import tools.database
from agent import tables
from agent.checkpoints import open_saver
from agent.cli import door
from agent.migrations import AGENT_BRANCH
from agent.problems import Problem
from agent.store import open_database
from tests.commands import here, refused, thread_of
from tests.demo_data import check_only
from tests.postgres import GUEST, Server
from tools.database import Branch, Database, DatabaseProblem, NoRoom
from tools.shop import tables as shop_tables
from tools.shop.migrations import SHOP_BRANCH

TOGETHER = """
import asyncio, os, sys
from agent.checkpoints import open_saver
from agent.store import open_database

gate, opener = os.pipe()

async def main():
    database = open_database(sys.argv[1])
    async with open_saver(database) as saver:
        assert await saver.aget({"configurable": {"thread_id": "t"}}) is None
    await database.close()

children = []
for n in range(6):
    if not (child := os.fork()):
        os.close(opener)
        os.read(gate, 1)  # until nobody holds the other end
        asyncio.run(main())
        os._exit(0)
    children.append(child)
os.close(opener)
print([os.waitpid(child, 0)[1] for child in children])
"""


@pytest.fixture
def empty(postgresql: Server) -> Iterator[str]:
    with postgresql.copy("template1") as url:
        yield url


@pytest.fixture
def url(postgresql: Server) -> Iterator[str]:
    with postgresql.copy() as url:
        yield url


def _as_guest(url: str) -> str:
    return url.replace("postgres@", GUEST).replace("postgres:@", GUEST)


async def _count(database: Database, table: str = "orders") -> int:
    async with database.connect() as db:
        return int(await db.scalar(text(f"SELECT count(*) FROM {table}")) or 0)


async def test_a_new_database_gets_tables_and_no_shop(empty: str) -> None:
    database = open_database(empty)
    assert await _count(database) == await _count(database, "actions") == 0
    await database.close()


async def test_a_right_to_make_tables_is_needed_once(empty: str, postgresql: Server) -> None:
    await _open_and_close(empty)
    grant = "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO guest"
    postgresql.execute(grant, url=empty)
    await _open_and_close(_as_guest(empty))


async def _open_and_close(url: str) -> None:
    database = open_database(url)
    async with open_saver(database):
        pass
    await database.close()


def test_processes_that_begin_together_on_an_empty_database_make_it_once(
    empty: str, postgresql: Server
) -> None:
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, empty],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == (f"{[0] * 6}\n", "")
    for branch in (SHOP_BRANCH, AGENT_BRANCH):
        versions = postgresql.execute(f"SELECT * FROM {branch.version_table}", url=empty)
        assert versions == [(branch.revisions[-1],)]


@pytest.mark.parametrize(
    ("branch", "metadata"),
    [(SHOP_BRANCH, shop_tables.metadata), (AGENT_BRANCH, tables.metadata)],
    ids=["shop", "agent"],
)
async def test_the_migrations_make_the_tables(
    branch: Branch, metadata: MetaData, empty: str
) -> None:
    database = Database(empty, branches=[branch])

    def differences(connection: Connection) -> Any:
        options = {"version_table": branch.version_table}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with database.connect() as db:
        assert await db.run_sync(differences) == []
    await database.close()


BREAKS = {
    "a newer schema": ("UPDATE shop_version SET version_num = '9999'", "made by a newer version"),
    "read-only": ("ALTER DATABASE {} SET default_transaction_read_only = on", "may only be read"),
    "timeout": ("ALTER DATABASE {} SET statement_timeout = '1ms'", "no more time than it took"),
    "no connection": ("ALTER DATABASE {} CONNECTION LIMIT 0", "no connection free"),
    "no way in": ("REVOKE CONNECT ON DATABASE {} FROM public", "does not allow its user"),
}


@pytest.mark.parametrize(("statement", "said"), BREAKS.values(), ids=BREAKS)
async def test_what_a_server_finds_wrong_is_one_sentence(
    statement: str, said: str, url: str, postgresql: Server
) -> None:
    postgresql.execute(
        "GRANT ALL ON SCHEMA public TO guest",
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO guest",
        statement.format(make_url(url).database),
        url=url,
    )
    await _refused(_as_guest(url), said)


UNUSABLE = {
    "a wrong password": ("hunter2@", "hunter3@", "takes no user of this name"),
    "an unknown user": ("guest:", "nobody:", "takes no user of this name"),
    "no such database": ("/test_", "/nowhere_", "does not exist on its server"),
    "no server": ("host=", "host=%2Fnowhere", "no server answers there"),
    "no rights": ("", "", "does not allow its user to do this"),
    "an unknown option": ("host=", "hunter=2&host=", "has an option in its URL"),
    "a wrong option": ("host=", "connect_timeout=hunter2&host=", "has an option in its URL"),
}


@pytest.mark.parametrize(("was", "now", "said"), UNUSABLE.values(), ids=UNUSABLE)
async def test_a_database_that_cannot_be_used_is_one_sentence(
    was: str, now: str, said: str, empty: str
) -> None:
    await _refused(_as_guest(empty).replace(was, now, 1) if was else _as_guest(empty), said)


async def test_a_server_that_is_not_there_is_named(url: str) -> None:
    await _refused("postgresql://guest:hunter2@127.0.0.1:1/shop", "127.0.0.1:1/shop cannot be")
    await _refused("postgresql://guest:hunter2@nowhere.invalid/shop", "no server answers there")


async def test_tables_of_another_program_are_left_alone(empty: str, postgresql: Server) -> None:
    postgresql.execute("CREATE TABLE orders (x int)", url=empty)
    await _refused(empty, "has tables of another program")
    [[count]] = postgresql.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", url=empty
    )
    assert count == 1


async def _refused(url: str, said: str) -> None:
    database = open_database(url)
    with pytest.raises(DatabaseProblem, match=said) as refused:
        async with database.begin() as db:
            await db.execute(text("UPDATE orders SET note = '' || pg_sleep(0.01)"))
    await database.close()
    assert "\n" not in str(refused.value)
    assert "hunter" not in str(refused.value)


async def test_what_does_not_fit_on_the_disk_is_said_to_be_so(url: str, postgresql: Server) -> None:
    postgresql.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$",
        "CREATE TRIGGER full_disk BEFORE UPDATE ON orders EXECUTE FUNCTION full_disk()",
        url=url,
    )
    database = open_database(url)
    with pytest.raises(NoRoom, match="disk is full"):
        await _change(database)
    await database.close()


async def test_a_locked_row_is_said_to_be_in_use(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.database, "BUSY_SECONDS", 0.2)
    one, other = open_database(url), open_database(url)
    async with one.begin() as db:
        await db.execute(text("UPDATE orders SET note = 'mine'"))
        with pytest.raises(DatabaseProblem, match="in use by another program"):
            await _change(other)
    await _change(other)
    await one.close()
    await other.close()


async def test_a_connection_lost_within_a_transaction_leaves_nothing(
    url: str, postgresql: Server
) -> None:
    database = open_database(url)
    with pytest.raises(DatabaseProblem, match="broke the connection off"):
        await _change(database, lambda: postgresql.break_off(url))
    async with database.connect() as db:
        assert await db.scalar(text("SELECT count(*) FROM orders WHERE note = 'new'")) == 0
    postgresql.break_off(url)  # those that wait in the pool
    await _change(database)
    await database.close()


async def _change(database: Database, meanwhile: object = None) -> None:
    async with database.begin() as db:
        await db.execute(text("UPDATE orders SET note = 'new'"))
        if callable(meanwhile):
            meanwhile()


async def test_checkpoints_go_on_where_connections_were_lost(url: str, postgresql: Server) -> None:
    database = open_database(url)
    async with open_saver(database) as saver:
        for _ in range(2):
            assert await saver.aget({"configurable": {"thread_id": "t"}}) is None
            postgresql.break_off(url)
    await database.close()


async def test_in_one_thread_one_turn_waits_for_the_other(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_database(url), open_database(url)
    async with door.door(one, "t-1"):
        async with door.door(other, "t-2"):
            pass
        with monkeypatch.context() as impatient:
            impatient.setattr(door, "PATIENCE", 0.3)
            with pytest.raises(Problem, match="Another command is answering in this thread"):
                await _enter(other, "t-2", "t-1")
        waiting = asyncio.create_task(_enter(other, "t-1"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
    await waiting
    await one.close()
    await other.close()


async def test_a_person_with_many_threads_takes_one_connection(url: str) -> None:
    database = open_database(url)
    await asyncio.gather(*(_enter(database, *map(str, range(100))) for _ in range(3)))
    await database.close()


async def _enter(database: Database, *threads: str) -> None:
    async with door.door(database, *threads):
        pass


async def test_text_that_postgresql_lacks_is_kept_all_the_same(url: str) -> None:
    database = open_database(url)
    row = {"thread_id": "t-\0", "token": "a\0b"}
    async with database.begin() as db:
        await db.execute(tables.fences.insert().values(row))
    async with database.connect() as db:
        query = tables.fences.select().where(tables.fences.c.thread_id == "t-\0")
        assert dict((await db.execute(query)).mappings().one()) == row
    await database.close()


def test_a_shops_own_orders_are_loaded_listed_asked_about_and_a_thread_erased(empty: str) -> None:
    on = {"SUPPORT_DATABASE_URL": empty}
    listed = here("orders", "list", **on)
    assert (listed.code, listed.out, listed.err) == (0, "", "")
    refused(here("ask", "Where is A?", **on), "The shop has no customer 'C-1001'")
    folder = Path(SHOP_BRANCH.folder).parent / "demo"
    assert here("orders", "import", str(folder / "customers.json"), **on).code == 0
    loaded = here("orders", "import", str(folder / "orders.json"), "--empty", **on)
    assert loaded.out.startswith("Loaded 41 orders (0 of them replaced)")
    again = here("orders", "import", str(folder / "orders.json"), "--empty", **on)
    refused(again, "The shop has orders already", code=1)
    assert len(here("orders", "list", "--json", **on).json) == 41
    asked = here("ask", "Where is order A?", **on)
    check_only(asked.out, "A")
    erased = here("threads", "delete", thread_of(asked), "--as", "sam", **on)
    assert erased.out.startswith("Erased: threads 1, turns 1, calls 1, tickets 0.")
    gone = here("ask", "And B?", "--thread", thread_of(asked), **on)
    refused(gone, "no such thread")


@pytest.mark.parametrize("table", ["checkpoints", "calls", "turns"])
def test_a_turn_that_the_database_breaks_off_is_told_and_the_next_one_goes_on(
    table: str, url: str, postgresql: Server
) -> None:
    on = {"SUPPORT_DATABASE_URL": url}
    thread = thread_of(here("ask", "Where is order A?", **on))
    postgresql.execute(
        "CREATE FUNCTION lost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$",
        f"CREATE TRIGGER lost BEFORE INSERT ON {table} EXECUTE FUNCTION lost()",
        url=url,
    )
    broken = here("ask", "Where is order B?", "--thread", thread, **on)
    said = broken.err.splitlines()[-1]
    assert (broken.code, broken.out) == (2, "")
    assert said.endswith("Try again in a moment. The turn was not finished.")
    postgresql.execute(f"DROP TRIGGER lost ON {table}", url=url)
    check_only(here("ask", "Where is order B?", "--thread", thread, **on).out, "B")
