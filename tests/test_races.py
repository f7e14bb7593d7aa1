"""Processes that want the same at the same time, through the graph."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from agent import tables
from agent.store import open_database
from tests.crashes import KILLED, End
from tests.ledgers import rows
from tests.scenes import CANCEL, ONCE, REFUND, Scene, SceneOf, asks_again, waits
from tests.shop_server import good, status
from tests.test_ledger_outside import on_lookups

pytest_plugins = ["tests.staging"]

NEW = ["new", pytest.param("new on postgresql", marks=pytest.mark.long)]
SHOPS = [
    *("own", "http"),
    *(pytest.param(shop, marks=pytest.mark.long) for shop in ("postgresql", "http on postgresql")),
]
REFUNDING = "Please refund 10 USD of order B, it arrived broken."


def _told(end: End) -> str:
    return str(end.said["report"]["message"])


@pytest.mark.parametrize("shop", NEW)
async def test_two_commands_on_one_thread_answer_one_after_the_other(
    shop: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    first = scene.job("ask", text="Where is order A?")
    ends = scene.crashes.run(first, scene.job("ask", text="Where is order A-18?", after=0.05))
    assert [end.code for end in ends] == [0, 0]
    turns = sorted(await _rows(scene, tables.turns), key=lambda turn: turn["turn"])
    assert [turn["turn"] for turn in turns] == [1, 2]
    assert all(turn["answer"]["status"] == "answered" for turn in turns)


@pytest.mark.parametrize("shop", SHOPS)
@pytest.mark.parametrize("later", ["send", "same", "decide"])
async def test_two_processes_in_one_thread_without_a_door_write_once(
    later: str, shop: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    ends = scene.crashes.run(scene.job("same"), scene.job(later, text="Hello?", after=0.05))
    assert ends[0].code == 0 or later != "send"
    await scene.later()
    assert set((await scene.effects()).values()) <= {0, 1}
    await asks_again(scene)


@pytest.mark.parametrize("shop", NEW)
async def test_of_twenty_processes_that_ask_for_the_same_refund_one_makes_it(
    shop: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    threads = [f"t-{n}" for n in range(20)]
    asked = scene.crashes.run(*[scene.job("ask", text=REFUNDING, thread=t) for t in threads])
    assert all(map(waits, asked)), asked
    ends = scene.crashes.run(*[scene.job("decide", thread=t) for t in threads])
    said = Counter("asked for before" in _told(end) for end in ends)
    assert said == {False: 1, True: 19}
    assert all("Refund of $10.00 for order B" in _told(end) for end in ends)
    assert (await scene.effects())[REFUND] == 1
    assert Counter((await scene.trail())[REFUND]) == {
        "confirmed": 1,
        "claimed": 1,
        "done": 1,
        "told_again": 19,
    }


@pytest.mark.parametrize("shop", SHOPS)
@pytest.mark.parametrize("ways", [("go on", "go on"), ("go on", "ask"), ("same", "decide")])
async def test_of_two_workers_that_meet_an_expired_claim_one_carries_it_out(
    ways: tuple[str, str], shop: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    assert scene.run("decide", at="claim", when="after").code == KILLED
    await scene.later()
    scene.crashes.run(*[scene.job(way, text="Hello?") for way in ways])
    await scene.later()
    assert set((await scene.effects()).values()) <= {0, 1}
    await asks_again(scene)


@pytest.mark.parametrize("shop", SHOPS[1::2])
async def test_a_success_that_is_known_only_after_the_timeout_is_told_once(
    shop: str, scene_of: SceneOf
) -> None:
    scene = scene_of(shop)
    assert scene.server is not None
    answered = asyncio.Event()

    def lookup(exchange: Any) -> None:
        (good if answered.is_set() else status(503))(exchange)

    def late(exchange: Any) -> None:
        exchange.server.released.wait(3)
        good(exchange)

    scene.server.behave(on_lookups(lookup, late))
    try:
        end = scene.run("decide", tool_timeout=1.5)
        assert _told(end).count("not known") == 2
        assert await scene.effects() == ONCE
        answered.set()
        end = scene.run("ask", text="Hello?")
        assert "Refund of $10.00 for order B: done." in _told(end)
        assert "Cancellation of order A-17: requested" in _told(end)
        assert "order A-17" not in _told(again := scene.run("ask", text="Hello?"))
        assert "order B" not in _told(again)
    finally:
        scene.server.behave(good)
    assert await scene.trail() == {
        CANCEL: ["confirmed", "claimed", "unknown", "accepted"],
        REFUND: ["confirmed", "claimed", "unknown", "done"],
    }


async def _rows(scene: Scene, table: Any) -> list[Any]:
    database = open_database(scene.url)
    found = await rows(database, table)
    await database.close()
    return list(found)
