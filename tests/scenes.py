"""A thread that waits for two confirmations, and whatever processes do with it.

Two writes, cancel A-17 and refund 10 USD of B, and a read of A; the shop is ours, or stands behind
an API in this process, so that it outlives those that are killed.
"""

import asyncio
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, text, update

from agent import tables
from agent.store import open_database
from tests.crashes import BOTH, Crashes, End, Job
from tests.ledgers import refunds_of, rows
from tests.postgres import Server
from tests.shop_server import TOKEN, ShopServer
from tests.shop_writes import Changes
from tools.database import Database
from tools.shop.sql import SqlShop

CANCEL, REFUND = WRITES = ("cancel_order", "request_refund")
ONCE = {CANCEL: 1, REFUND: 1}
_SAID = "(, asked for before)?: (done|requested)"
DONE = {
    CANCEL: re.compile(f"Cancellation of order A-17{_SAID}"),
    REFUND: re.compile(f"Refund of .10.00 for order B{_SAID}"),
}


@dataclass(frozen=True)
class Scene:
    """`answers` say yes to both. server: None where the shop is in our database."""

    crashes: Crashes
    url: str
    server: ShopServer | None
    answers: dict[str, Any]

    @contextmanager
    def copied(self, folder: Path, there: Server | None) -> Iterator["Scene"]:
        """With a database of its own: a file in the folder, or on the server."""
        if self.server:
            self.server.changes = Changes()
        if there:
            with there.copy(str(make_url(self.url).database)) as url:
                yield replace(self, url=url)
        else:
            file = shutil.copy(str(make_url(self.url).database), folder)
            yield replace(self, url=f"sqlite:///{file}")

    def job(self, do: str, **options: Any) -> Job:
        shop = {"shop_url": self.server.url, "shop_token": TOKEN} if self.server else {}
        return Job(self.url, do, **{"answers": self.answers, **shop, **options})

    def run(self, do: str, **options: Any) -> End:
        [end] = self.crashes.run(self.job(do, **options))
        return end

    async def effects(self) -> dict[str, int]:
        """How often each write was done, as the shop says."""
        if self.server:
            made = [what for _, what in self.server.changes.made]
            return {CANCEL: made.count("cancellations"), REFUND: made.count("refunds")}
        database = open_database(self.url)
        order = await SqlShop(database).order("A-17")
        assert order is not None
        refunded = [str(row["amount"]) for row in await refunds_of(database, "B")]
        await database.close()
        assert set(refunded) <= {"10"}
        return {CANCEL: int(order.status == "cancelled"), REFUND: len(refunded)}

    async def trail(self) -> dict[str, list[str]]:
        """The events of each write in the audit trail."""
        database = open_database(self.url)
        lines = await rows(database, tables.audit, "id")
        await database.close()
        return {tool: [e["event"] for e in lines if e["tool"] == tool] for tool in WRITES}

    async def told(self) -> str:
        """The answers of all turns that have ended."""
        database = open_database(self.url)
        turns = await rows(database, tables.turns, "turn")
        await database.close()
        return "\n".join(turn["answer"]["message"] for turn in turns if turn["answer"])

    async def later(self) -> None:
        """As if the time had passed that whoever was stopped may have needed."""
        await asyncio.sleep(0.05 if self.server else 0)  # what was sent arrives
        database = open_database(self.url)
        while await _others(database):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        open_ = tables.actions.c.state.in_(("claimed", "unknown"))
        async with database.begin() as db:
            await db.execute(update(tables.actions).where(open_).values(until="2000-01-01"))
        await database.close()


async def _others(database: Database) -> int:
    """On a server: who is still at what a killed process had sent."""
    if database.file:
        return 0
    async with database.connect() as db:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        mine = " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return int(await db.scalar(text(query + mine)) or 0)


def named(value: object) -> str:
    """A point, or what else a test's case is made of, in its id."""
    return " ".join(map(str, value[1::-1])) if isinstance(value, tuple) else str(value)


SceneOf = Callable[[str], Scene]


async def goes_on(way: str, *scenes: Scene, any_time: bool = False) -> None:
    """New processes go on, once the claims are free; then the customers ask for the same again.

    Then each effect is there once, and whatever was told meanwhile was true. any_time: the turn may
    have ended before, so that it was told then.
    """
    effects, told = [], []
    for scene in scenes:
        await scene.later()
        effects.append(await scene.effects())
        told.append(await scene.told() if any_time else "")
        assert set(effects[-1].values()) <= {0, 1}
    ends = _each(scenes, way, text="Hello?")
    for scene, end, before in zip(scenes, ends, effects, strict=True):
        after = await scene.effects()  # the yes to one may be kept, and that to the other lost
        asked = [each["tool"] for each in end.said.get("report", {}).get("confirmations", ())]
        assert all(after[tool] == before[tool] for tool in asked), (before, after, asked)
    for scene, end, said in zip(scenes, await _confirmed(scenes, ends), told, strict=True):
        await check_told(scene, end, said)
    await asks_again(*scenes)


async def asks_again(*scenes: Scene) -> None:
    ends = await _confirmed(scenes, _each(scenes, "ask", text=BOTH))
    for scene, end in zip(scenes, ends, strict=True):
        effects, trail = await scene.effects(), await scene.trail()
        assert effects == ONCE, (effects, trail, end)
        await check_told(scene, end)
        assert end.said["report"]["status"] == "answered", end
        for events in trail.values():
            _check_trail(events)


def _each(scenes: Sequence[Scene], do: str, **options: Any) -> list[End]:
    ends = scenes[0].crashes.run(*[scene.job(do, **options) for scene in scenes])
    assert {end.code for end in ends} == {0}, ends
    return ends


async def _confirmed(scenes: Sequence[Scene], ends: Sequence[End]) -> list[End]:
    """How it is once all that waits has been confirmed."""
    waiting = [scene for scene, end in zip(scenes, ends, strict=True) if waits(end)]
    later = iter(_each(waiting, "decide") if waiting else ())
    return [next(later) if waits(end) else end for end in ends]


def waits(end: End) -> bool:
    return bool(end.said.get("report", {}).get("confirmations"))


async def check_told(scene: Scene, end: End, before: str = "") -> None:
    """Each call has its result, and the customer reads, or has read, what the shop says."""
    effects, told = await scene.effects(), end.said.get("report", {})
    if "Nothing waits" in end.said.get("problem", ""):  # the turn had ended, and had told it
        assert set(effects.values()) == {1}, end
        return
    if not told and not before:  # nothing was kept of the turn, and nothing can have been confirmed
        assert not scene.answers, end
        assert set(effects.values()) == {0}
        return
    assert {call["status"] for call in told.get("calls", ())} <= {"ok", "error"}
    message = before + told.get("message", "")
    for tool, words in DONE.items():
        said = words.search(message) is not None
        assert said is bool(effects[tool]), (tool, effects, message)


def _check_trail(events: list[str]) -> None:
    """Confirmed before it was claimed, claimed before it was done, and that once."""
    ends = [place for place, event in enumerate(events) if event in ("done", "accepted")]
    assert len(ends) == 1, events
    assert "claimed" in events[: ends[0]]
    for place, event in enumerate(events):
        assert event != "claimed" or events[place - 1] in ("confirmed", "claimed"), events
