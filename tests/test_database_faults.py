"""The database fails in the middle of a turn that writes: nothing is lost or done twice."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.scenes import ONCE, SceneOf, asks_again, check_told, named

pytest_plugins = ["tests.staging"]

SAID = {
    "lock": "is in use by another program",
    "fill": "no room",
    "protect": "may only be read",
    "lose": "broke the connection off",
    "restart": "broke the connection off",
}
# The customer's yes is taken, claimed, made, recorded, kept, answered; outside a transaction of the
# process itself, or nobody else could lock the database there.
POINTS = {
    "own": ("confirmation", "claim", "commit", "round kept", "answer"),
    "http": ("confirmation", "claim", "refund", "round kept", "answer"),
}
# Within it: once it is claimed, before and after the effect, and before the commit.
WITHIN = (("claim row", "after"), ("refund", "before"), ("done", "before"), ("done", "after"))
ON_SERVER = ("postgresql", "http on postgresql")


def _cases() -> Iterator[Any]:
    for fault, shop in product(("lock", "fill", "protect"), POINTS):
        for at in POINTS[shop]:
            seen = at == "refund" or (shop == "own" and at in ("claim", "round kept"))
            marks = [] if seen else [pytest.mark.long]
            yield pytest.param(fault, shop, (at, "before"), marks=marks)
    points = (*WITHIN, *((at, "before") for at in (*POINTS["own"], "checkpoint")))
    for fault, shop, point in product(("lose", "restart"), ON_SERVER, points):
        seen = shop == "postgresql" and point == ("done", "after")
        yield pytest.param(fault, shop, point, marks=[] if seen else [pytest.mark.long])


@pytest.mark.parametrize(("fault", "shop", "point"), [*_cases()], ids=named)
async def test_a_fault_is_said_and_when_it_is_over_each_write_is_done_once(
    fault: str, shop: str, point: tuple[str, str], scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    end = scene.run("decide", at=point[0], when=point[1], how=fault, busy=0.3)
    assert end.code == 0
    if "problem" in end.said:
        assert SAID[fault] in end.said["problem"]
        assert "The turn was not finished." in end.said["problem"]
    else:
        await check_told(scene, end)
    await scene.later()
    assert set((await scene.effects()).values()) <= {0, 1}
    await asks_again(scene)


@pytest.mark.parametrize("shop", ["own", "postgresql"])
async def test_what_was_committed_and_not_heard_of_is_told_and_not_done_again(
    shop: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    end = scene.run("decide", at="commit", when="after", how="unheard")
    assert await scene.effects() == ONCE
    await check_told(scene, end)
    await asks_again(scene)
