"""How many calls run at once, and for how long (promise P4): none holds its siblings up."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel

from agent.settings import Settings
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    ask,
    cards_of,
    config_of,
    graph_of,
    question,
    results_of,
)
from tools.database import Database
from tools.failures import Refused
from tools.ids import OrderId
from tools.tool import Context, tool

pytestmark = pytest.mark.on_both("long")


class View(BaseModel):
    order_id: str
    city: str = "Vienna"


@dataclass
class Gauge:
    """How many are inside at once, and how many there were at most."""

    now: int = 0
    most: int = 0
    seen: list[str] = field(default_factory=list)

    async def stay(self, who: str, rounds: int = 5) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        self.seen.append(who)
        for _ in range(rounds):
            await asyncio.sleep(0)
        self.now -= 1


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_calls_reach_a_service_at_once_than_its_tool_allows(
    limit: int, database: Database
) -> None:
    gauge = Gauge()

    @tool(subject="order_id", limit=limit, required=("order_id",), sentence="{order_id}")
    async def slow(ctx: Context, order_id: OrderId) -> View:
        """Stays a while."""
        await gauge.stay(order_id)
        return View(order_id=order_id)

    calls = [(f"c{n}", "slow", {"order_id": f"O-{n}"}) for n in range(40)]
    model = Scripted(calling(*calls), answering())
    state = await ask(graph_of(model, tools=[slow], database=database), "All of them?")
    assert gauge.most == limit
    assert len(gauge.seen) == 40
    assert set(results_of(state).values()) == {(f"O-{n}", "ok") for n in range(40)}


async def test_a_place_is_free_again_after_a_failure(database: Database) -> None:
    @tool(subject="order_id", limit=1, required=("order_id",), sentence="{order_id}")
    async def broken(ctx: Context, order_id: OrderId) -> View:
        """Fails, each time in another way."""
        raise {"O-0": ValueError(), "O-1": asyncio.CancelledError()}.get(order_id, Refused("No."))

    calls = [(f"c{n}", "broken", {"order_id": f"O-{n}"}) for n in range(4)]
    model = Scripted(calling(*calls), answering())
    state = await ask(graph_of(model, tools=[broken], database=database), "All of them?")
    kinds = [kind for _, kind in results_of(state).values()]
    assert sorted(kinds) == ["refused", "refused", "service_error", "service_error"]


async def test_a_call_that_takes_too_long_ends_as_a_timeout_of_its_own(database: Database) -> None:
    never = asyncio.Event()

    @tool(subject="order_id", timeout=0.01, required=("order_id",), sentence="{order_id}")
    async def hang(ctx: Context, order_id: OrderId) -> View:
        """Hangs for one order."""
        if order_id == "A":
            await never.wait()
        return View(order_id=order_id)

    model = Scripted(
        calling(("c1", "hang", {"order_id": "A"}), ("c2", "hang", {"order_id": "B"})), answering()
    )
    state = await ask(graph_of(model, tools=[hang], database=database), "A and B?")
    assert results_of(state) == {"1/c1": ("A", "timeout"), "1/c2": ("B", "ok")}
    assert "did not answer in time" in cards_of(state)["c1"]["text"]


async def test_a_tool_that_will_not_be_cancelled_cannot_hold_the_turn_up(
    database: Database,
) -> None:
    release = asyncio.Event()

    @tool(subject="order_id", timeout=0.01, required=("order_id",), sentence="{order_id}")
    async def stubborn(ctx: Context, order_id: OrderId) -> View:
        """Ignores that it is cancelled, and fails later."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("too late")

    model = Scripted(calling(("c1", "stubborn", {"order_id": "A"})), answering())
    state = await ask(graph_of(model, tools=[stubborn], database=database), "And A?")
    release.set()
    await asyncio.sleep(0)
    assert results_of(state) == {"1/c1": ("A", "timeout")}


async def test_the_deployments_timeout_counts_where_a_tool_has_none(database: Database) -> None:
    @tool(subject="order_id", required=("order_id",), sentence="{order_id}")
    async def hang(ctx: Context, order_id: OrderId) -> View:
        """Hangs."""
        await asyncio.Event().wait()
        raise AssertionError

    model = Scripted(calling(("c1", "hang", {"order_id": "A"})), answering())
    settings = Settings(model="offline", tool_timeout=0.01)
    state = await ask(graph_of(model, tools=[hang], settings=settings, database=database), "A?")
    assert results_of(state) == {"1/c1": ("A", "timeout")}


async def test_cancelling_the_turn_cancels_its_tools_and_is_not_swallowed(
    database: Database,
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool(subject="order_id", required=("order_id",), sentence="{order_id}")
    async def wait(ctx: Context, order_id: OrderId) -> View:
        """Waits until somebody stops it."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    model = Scripted(calling(("c1", "wait", {"order_id": "A"})), answering())
    graph = graph_of(model, tools=[wait], database=database)
    turn = asyncio.create_task(graph.ainvoke(question("And A?"), config_of()))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await asyncio.wait_for(ended.wait(), 1)


async def test_cancelling_a_turn_of_many_calls_leaves_none_of_its_tools_running() -> None:
    begun, running = asyncio.Event(), 0

    async def wait(number: int) -> str:
        """Waits until somebody stops it."""
        nonlocal running
        running += 1
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            running -= 1
        raise AssertionError

    model = Scripted(calling(*((f"c{n}", "wait", {"number": n}) for n in range(40))), answering())
    turn = asyncio.create_task(
        graph_of(model, tools=[wait]).ainvoke(question("Well?"), config_of())
    )
    await begun.wait()  # by now not all of them are prepared
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await asyncio.sleep(0)
    assert not running


async def test_the_first_of_many_calls_runs_before_the_last_is_prepared() -> None:
    seen: list[tuple[str, int]] = []

    def prepared(number: int) -> int:
        seen.append(("prepared", number))
        return number

    async def look_up(number: Annotated[int, AfterValidator(prepared)]) -> str:
        """Looks one thing up."""
        seen.append(("runs", number))
        return "found"

    calls = ((f"c{n}", "look_up", {"number": n}) for n in range(40))
    state = await ask(graph_of(Scripted(calling(*calls), answering()), tools=[look_up]), "Well?")
    assert seen.index(("runs", 0)) < seen.index(("prepared", 39))
    assert set(results_of(state).values()) == {("", "ok")}
