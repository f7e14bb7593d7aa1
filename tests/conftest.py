"""What most tests need: a shop in a real SQLite file, and turns run through the real graph."""

import os
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


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A database with the demo shop."""
    opened = open_database(f"sqlite:///{tmp_path / 'shop.db'}")
    yield opened
    await opened.close()
