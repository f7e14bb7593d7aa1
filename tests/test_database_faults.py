"""The database fails in the middle of a turn that writes: nothing is lost or done twice."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.scenes import SceneOf, asks_again, check_told

pytest_plugins = ["tests.staging"]

SAID = {"lock": "is in use by another program", "fill": "no room", "protect": "may only be read"}
# The customer's yes is taken, claimed, made, recorded, kept, answered; outside a transaction of the
# process itself, or nobody else could lock the database there.
POINTS = {
    "own": ("confirmation", "claim", "commit", "round kept", "answer"),
    "http": ("confirmation", "claim", "refund", "round kept", "answer"),
}


def _cases() -> Iterator[Any]:
    for fault, shop in product(SAID, POINTS):
        for at in POINTS[shop]:
            seen = at in ("claim", "refund") or (shop == "own" and at == "round kept")
            yield pytest.param(fault, shop, at, marks=[] if seen else [pytest.mark.long])


@pytest.mark.parametrize(("fault", "shop", "at"), [*_cases()])
async def test_a_fault_is_said_and_when_it_is_over_each_write_is_done_once(
    fault: str, shop: str, at: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    end = scene.run("decide", at=at, how=fault, busy=0.3)
    assert end.code == 0
    if "problem" in end.said:
        assert SAID[fault] in end.said["problem"]
        assert "The turn was not finished." in end.said["problem"]
    else:
        await check_told(scene, end)
    await scene.later()
    assert set((await scene.effects()).values()) <= {0, 1}
    await asks_again(scene)
