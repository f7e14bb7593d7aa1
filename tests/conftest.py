"""What most tests need: a shop in a real SQLite file, or on a real PostgreSQL server."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from agent.settings import Settings
from agent.store import open_database
from tests import commands
from tests.postgres import TEMPLATE, Server, server
from tools.database import Database
from tools.shop.migrations import SHOP_BRANCH
from tools.shop.tables import orders


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`pytest.mark.on_both`: on SQLite and on PostgreSQL; with "long" there in that run."""
    marked = metafunc.definition.get_closest_marker("on_both")
    alone = metafunc.definition.get_closest_marker("on_file")
    if marked and not alone and "database_url" in metafunc.fixturenames:
        there = pytest.param("postgresql", marks=[getattr(pytest.mark, m) for m in marked.args])
        metafunc.parametrize("database_url", ["sqlite", there], indirect=True)


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests see no variable, no `.env` and no database of whoever runs them."""
    for name in os.environ:
        if name.startswith(("SUPPORT_", "OPENAI_", "ANTHROPIC_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def settings() -> Settings:
    return Settings(model="offline")


@pytest.fixture(scope="session")
def demo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the demo shop, to be copied: making one takes longer than most tests."""
    file = tmp_path_factory.mktemp("demo") / "shop.db"
    asyncio.run(_fill(f"sqlite:///{file}"))
    return file


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server with a database to be copied that has the demo shop."""
    with server() as running:
        running.execute(f"CREATE DATABASE {TEMPLATE}")
        asyncio.run(_fill(running.database(TEMPLATE)))
        yield running


async def _fill(url: str) -> None:
    database = open_database(url)
    await database.prepare()
    async with database.begin() as db:
        if not await db.scalar(select(func.count()).select_from(orders)):
            assert SHOP_BRANCH.seed is not None
            await db.run_sync(SHOP_BRANCH.seed)
    await database.close()


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a database with the demo shop is: a file, or with `on_both` also a server's."""
    if getattr(request, "param", "sqlite") == "sqlite":
        folder = request.getfixturevalue("tmp_path")
        yield f"sqlite:///{shutil.copy(request.getfixturevalue('demo_file'), folder / 'shop.db')}"
    else:
        with request.getfixturevalue("postgresql").copy() as url:
            yield url


@pytest.fixture
def commands_on(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's commands use this database."""
    monkeypatch.setitem(commands.COMMON, "SUPPORT_DATABASE_URL", database_url)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A database with the demo shop."""
    opened = open_database(database_url)
    yield opened
    await opened.close()
