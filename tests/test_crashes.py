"""A turn with two writes and a read, stopped at each point of it; a new process goes on with it.

Whatever happened, each effect is there once in the end, and not before it is confirmed; every call
has its one result, and what the customer reads is what the shop says.
"""

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import pytest

from tests.crashes import BOTH, KILLED, STOPPED
from tests.scenes import Scene, SceneOf, goes_on, named

pytest_plugins = ["tests.staging"]

Point = tuple[str, str, int]  # name, when, which time
ENDS = {"kill": KILLED, "term": STOPPED, "cancel": 0}
WAYS = ("go on", "same", "decide", "ask")

# Behind the pause, in this order; before it, the points of the turn that asks.
DECIDING = (
    *("look-up", "question", "confirmation", "claim", "claim row", "cancel", "refund", "done"),
    *("commit", "result", "pending write", "round", "round kept", "checkpoint", "request"),
    *("answer",),
)
ASKING = ("admission", "turn", "request", "checkpoint", "look-up", "question", "pending write")
# Reached once for each of the two writes.
TWICE = ("look-up", "confirmation", "claim", "done", "commit", "result", "pending write")
SHOPS = ("own", "http", "postgresql", "http on postgresql")
# What the short run sees of what is not in our file, and of a turn that is stopped in order.
ELSEWHERE = ("claim", "refund", "commit")
HERE = (*ELSEWHERE, "question", "confirmation", "done", "pending write", "checkpoint", "answer")
IN_ORDER = ("refund", "request")


def _cases() -> Iterator[Any]:
    """Where it is killed, each way is tried, in the short run one of them."""
    usual = cycle(WAYS + WAYS[1:])
    for how, shop, when, at in product(ENDS, SHOPS, ("before", "after"), DECIDING):
        chosen, killed = next(usual), how == "kill"
        seen = at in ((HERE if shop == "own" else ELSEWHERE) if killed else IN_ORDER)
        seen &= when == "after" or (killed and shop == "http")
        for way in WAYS if killed and shop in SHOPS[:2] else [chosen]:
            marks = [] if seen and way == chosen else [pytest.mark.long]
            yield pytest.param(how, shop, (at, when, 1), way, marks=marks)
        if killed and at in TWICE:
            yield pytest.param(how, shop, (at, when, 2), chosen, marks=pytest.mark.long)


async def _stopped(scene: Scene, do: str, how: str, point: Point, **options: Any) -> None:
    at, when, nth = point
    end = scene.run(do, at=at, when=when, nth=nth, how=how, **options)
    assert end.code == ENDS[how], f"the point was not reached: {end}"


@pytest.mark.parametrize(("how", "shop", "point", "way"), [*_cases()], ids=named)
async def test_a_turn_that_is_stopped_is_gone_on_with_and_each_write_done_once(
    how: str, shop: str, point: Point, way: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    await _stopped(scene, "decide", how, point)
    await goes_on(way, scene)


def _asking() -> Iterator[Any]:
    places = product(("before", "after"), ASKING)
    for (when, at), chosen in zip(places, cycle(WAYS[::3]), strict=False):
        for how, shop, way in product(ENDS, ("new", "new on postgresql"), WAYS[::3]):
            usual = (how, shop) == ("kill", "new")
            seen = usual and when == "after" and way == chosen
            if usual or way == chosen:
                marks = [] if seen else [pytest.mark.long]
                yield pytest.param(how, shop, (at, when, 1), way, marks=marks)


@pytest.mark.parametrize(("how", "shop", "point", "way"), [*_asking()], ids=named)
async def test_a_question_that_is_stopped_before_it_is_confirmed_changes_nothing(
    how: str, shop: str, point: Point, way: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    await _stopped(scene, "ask", how, point, text=BOTH)
    assert set((await scene.effects()).values()) == {0}
    await goes_on(way, scene)
