"""Processes that are killed at any moment of a turn; `tests/test_crashes.py` has the named ones."""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.crashes import BOTH, KILLED
from tests.postgres import Server
from tests.scenes import Scene, SceneOf, goes_on
from tests.shop_server import ShopServer, serving

pytest_plugins = ["tests.staging"]

AT_ONCE = 4
WAYS = ("go on", "same", "decide", "ask")
OF_A_QUESTION = ("go on", "ask")
Copies = Callable[[], AbstractContextManager[list[Scene]]]


@pytest.fixture(scope="module")
def servers() -> Iterator[list[ShopServer]]:
    """A shop outside for each lane."""
    with ExitStack() as stack:
        yield [stack.enter_context(serving()) for _ in range(AT_ONCE)]


COUNTS = {"own": 150, "http": 130, "postgresql": 140, "new": 80}


@pytest.mark.parametrize(
    ("shop", "count"),
    [
        ("own", 8),
        *[pytest.param(shop, 8, marks=pytest.mark.long) for shop in ("http", "new")],
        *[pytest.param(shop, count, marks=pytest.mark.long) for shop, count in COUNTS.items()],
    ],
)
async def test_a_turn_that_is_killed_at_any_moment_is_gone_on_with_and_each_write_done_once(
    shop: str,
    count: int,
    servers: list[ShopServer],
    asked: SceneOf,
    there: Server | None,
    tmp_path: Path,
) -> None:
    chance = random.Random(f"{shop} {count}")
    lanes = [replace(asked(shop), server=s if shop == "http" else None) for s in servers]
    deed = {"do": "ask", "text": BOTH} if shop == "new" else {"do": "decide"}
    copies = partial(_copies, lanes, tmp_path, there)
    whole, killed = _seconds(copies, deed), 0
    for _ in range(0, count, AT_ONCE):
        with copies() as scenes:
            jobs = [each.job(**deed, kill=chance.uniform(0.01, whole)) for each in scenes]
            ends = scenes[0].crashes.run(*jobs)
            assert {end.code for end in ends} <= {0, KILLED}
            killed += [end.code for end in ends].count(KILLED)
            way = chance.choice(WAYS if lanes[0].answers else OF_A_QUESTION)
            await goes_on(way, *scenes, any_time=True)
    assert killed > count / 4


def _seconds(copies: Copies, deed: dict[str, str]) -> float:
    """How long a turn takes while the other lanes have one."""
    seconds = []
    for _ in range(3):
        with copies() as scenes:
            jobs = [scene.job(**deed) for scene in scenes]
            began = time.monotonic()
            scenes[0].crashes.run(*jobs)
            seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


@contextmanager
def _copies(lanes: list[Scene], folder: Path, there: Server | None) -> Iterator[list[Scene]]:
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(TemporaryDirectory(dir=folder))) for _ in lanes]
        yield [
            stack.enter_context(scene.copied(place, there))
            for scene, place in zip(lanes, folders, strict=True)
        ]
