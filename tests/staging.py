"""The fixtures of `tests/scenes.py`, as a plugin of the files that name it."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.crashes import BOTH, Crashes
from tests.postgres import TEMPLATE
from tests.scenes import WRITES, Scene, SceneOf
from tests.shop_server import ShopServer, serving
from tests.shop_writes import Changes


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
        if name == "postgresql":
            there = request.getfixturevalue("postgresql")
            there.execute(f"CREATE DATABASE asked TEMPLATE {TEMPLATE}")
            url = there.database("asked")
        else:
            url = f"sqlite:///{shutil.copy(demo_file, folder / f'{name}.db')}"
        scene = Scene(crashes, url, server if name == "http" else None, {})
        if name != "new":
            end = scene.run("ask", text=BOTH)
            waiting = [each["tool"] for each in end.said["report"]["confirmations"]]
            assert waiting == list(WRITES)
            scene.answers.update(end.said["answers"])
        return scene

    return made


@pytest.fixture
def scene_of(
    request: pytest.FixtureRequest, asked: SceneOf, server: ShopServer, tmp_path: Path
) -> Iterator[SceneOf]:
    """A scene of its own, by name: "own" and "http" after the shop where both wait, "postgresql"
    where ours is on a server, "new" before anything was asked."""
    chosen = getattr(request.node, "callspec", None)
    if chosen and "postgresql" in chosen.params.values():
        there = request.getfixturevalue("postgresql")  # here, as it runs an event loop of its own
    with ExitStack() as stack:

        def scene(name: str) -> Scene:
            server.changes = Changes()
            original = asked(name)
            if name != "postgresql":
                return original.copied(tmp_path)
            return replace(original, url=stack.enter_context(there.copy("asked")))

        yield scene
