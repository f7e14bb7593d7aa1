"""What most tests need: a shop in a real SQLite file."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.settings import Settings
from agent.store import open_database
from tools.database import Database


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

    async def make() -> None:
        database = open_database(f"sqlite:///{file}")
        await database.prepare()
        await database.close()

    asyncio.run(make())
    return file


@pytest.fixture
async def database(demo_file: Path, tmp_path: Path) -> AsyncIterator[Database]:
    """A database with the demo shop."""
    file = shutil.copy(demo_file, tmp_path / "shop.db")
    opened = open_database(f"sqlite:///{file}")
    yield opened
    await opened.close()
