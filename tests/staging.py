"""The fixtures of `tests/scenes.py`, as a plugin of the files that name it."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.crashes import BOTH, Crashes
from tests.postgres import TEMPLATE, Server
from tests.scenes import WRITES, Scene, SceneOf
from tests.shop_server import ShopServer, serving


@pytest.fixture(scope="module")
def crashes() -> Iterator[Crashes]:
    with Crashes() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[ShopServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def asked(
    request: pytest.FixtureRequest, crashes: Crashes, server: ShopServer, demo_file: Path
) -> SceneOf:
    """What scenes are copies of: where nothing was asked yet, and where it was, by shop."""
    folder = request.getfixturevalue("tmp_path_factory").mktemp("asked")

    @cache
    def made(name: str) -> Scene:
        outside = name.startswith("http")
        if name.endswith("postgresql"):
            there = request.getfixturevalue("postgresql")
            place = f"{folder.name}_{name.replace(' ', '_')}"  # files share the server
            there.execute(f"CREATE DATABASE {place} TEMPLATE {TEMPLATE}")
            url = there.database(place)
        else:
            url = f"sqlite:///{shutil.copy(demo_file, folder / f'{name}.db')}"
        scene = Scene(crashes, url, server if outside else None, {})
        if not name.startswith("new"):
            end = scene.run("ask", text=BOTH)
            waiting = [each["tool"] for each in end.said["report"]["confirmations"]]
            assert waiting == list(WRITES)
            scene.answers.update(end.said["answers"])
        return scene

    return made


@pytest.fixture
def there(request: pytest.FixtureRequest) -> Server | None:
    """The server of a test that names it; here, as it starts with an event loop of its own."""
    chosen = getattr(request.node, "callspec", None)
    named = chosen and any(str(value).endswith("postgresql") for value in chosen.params.values())
    return request.getfixturevalue("postgresql") if named else None


@pytest.fixture
def scene_of(asked: SceneOf, there: Server | None, tmp_path: Path) -> Iterator[SceneOf]:
    """A scene of its own, by name: "own" and "http" after the shop where both wait, "new" before
    anything was asked; "on postgresql", or that alone, where our database is on a server."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(asked(name).copied(tmp_path, there))
