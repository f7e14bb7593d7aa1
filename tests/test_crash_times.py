"""Processes that are killed at any moment of a turn; `tests/test_crashes.py` has the named ones."""

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crashes import BOTH, KILLED
from tests.scenes import Scene, SceneOf, goes_on
from tests.shop_server import ShopServer, serving
from tests.shop_writes import Changes

pytest_plugins = ["tests.staging"]

AT_ONCE = 4
WAYS = ("go on", "same", "decide", "ask")
OF_A_QUESTION = ("go on", "ask")


@pytest.fixture(scope="module")
def servers() -> Iterator[list[ShopServer]]:
    """A shop outside for each lane."""
    with ExitStack() as stack:
        yield [stack.enter_context(serving()) for _ in range(AT_ONCE)]


@pytest.mark.parametrize(
    ("shop", "count"),
    [
        *[pytest.param(shop, 8) for shop in ("own", "http", "new")],
        *[pytest.param(shop, 40, marks=pytest.mark.long) for shop in ("own", "http")],
        pytest.param("new", 20, marks=pytest.mark.long),
    ],
)
async def test_a_turn_that_is_killed_at_any_moment_is_gone_on_with_and_each_write_done_once(
    shop: str, count: int, servers: list[ShopServer], asked: SceneOf, tmp_path: Path
) -> None:
    chance = random.Random(f"{shop} {count}")
    lanes = [replace(asked(shop), server=s if shop == "http" else None) for s in servers]
    deed = {"do": "ask", "text": BOTH} if shop == "new" else {"do": "decide"}
    whole, killed = _seconds(lanes, tmp_path, deed), 0
    for place in range(0, count, AT_ONCE):
        scenes = _copies(lanes, tmp_path / str(place))
        jobs = [each.job(**deed, kill=chance.uniform(0.01, whole)) for each in scenes]
        ends = scenes[0].crashes.run(*jobs)
        assert {end.code for end in ends} <= {0, KILLED}
        killed += [end.code for end in ends].count(KILLED)
        await goes_on(
            chance.choice(WAYS if lanes[0].answers else OF_A_QUESTION), *scenes, any_time=True
        )
    assert killed > count / 4


def _seconds(lanes: list[Scene], folder: Path, deed: dict[str, str]) -> float:
    """How long a turn takes while the other lanes have one."""
    seconds = []
    for n in range(3):
        jobs = [scene.job(**deed) for scene in _copies(lanes, folder / f"timed {n}")]
        began = time.monotonic()
        lanes[0].crashes.run(*jobs)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


def _copies(lanes: list[Scene], folder: Path) -> list[Scene]:
    scenes = []
    for n, scene in enumerate(lanes):
        place = folder / str(n)
        place.mkdir(parents=True)
        if scene.server:
            scene.server.changes = Changes()
        scenes.append(scene.copied(place))
    return scenes
