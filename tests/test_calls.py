"""What becomes of a call that goes wrong (promise P4): its own error, and its siblings' data."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, field_validator

from agent.graph import Graph
from agent.settings import Settings
from tests.scripted import Scripted, answering, calling
from tests.turns import (
    ask,
    cards_of,
    config_of,
    counting,
    failing,
    graph_of,
    question,
    results_of,
    told,
)
from tools.database import Database
from tools.failures import NotFound, Refused
from tools.ids import OrderId
from tools.registry import TOOLS
from tools.shop.models import Customer, Order, Parcel
from tools.shop.protocol import Shop
from tools.shop.sql import SqlShop
from tools.tool import Context, tool

pytestmark = pytest.mark.on_both("long")

THREE = [
    ("c1", "get_order", {"order_id": "A"}),
    ("c2", "get_order", {"order_id": "B"}),
    ("c3", "get_delivery", {"order_id": "A-18"}),
]


class View(BaseModel):
    order_id: str
    city: str = "Vienna"


@tool(subject="order_id", required=("order_id",), sentence="{order_id}: {city}")
async def find(ctx: Context, order_id: OrderId) -> View:
    """Answers about the order; some orders make it go wrong."""
    return View(order_id=_OTHER.get(order_id, order_id))


_OTHER = {"X": "Y", "EMPTY": "", "ENDLESS": "A" * 5000, "HIDDEN": "\x00", "CUT": "CU"}


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("password=hunter2 of db-7.internal"),
        KeyError("hunter2"),
        TimeoutError("hunter2"),
        asyncio.CancelledError("hunter2"),
        ExceptionGroup("hunter2", [ValueError("hunter2")]),
        NotImplementedError("hunter2"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_exception_of_one_tool_harms_nobody_and_tells_nothing(
    error: BaseException, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    runs: list[str] = []
    model = Scripted(calling(*THREE), answering(("c2", "{order_id} {status}")))
    tools = counting(failing(TOOLS, ["c2"], error), runs)
    state = await ask(graph_of(model, tools=tools, database=database), "A, B and A-18?")
    assert results_of(state) == {
        "1/c1": ("A", "ok"),
        "1/c2": ("B", "service_error"),
        "1/c3": ("A-18", "ok"),
    }
    assert sorted(runs) == ["c1", "c2", "c3"]
    assert cards_of(state)["c2"]["text"] == "I could not check order B: the service failed."
    everything = repr((state, model.requests, [r.getMessage() for r in caplog.records]))
    assert "hunter2" not in everything
    assert "Traceback" not in everything


async def test_could_not_check_and_no_such_order_are_different_sentences(
    database: Database,
) -> None:
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "Z-9"})),
        answering(),
    )
    state = await ask(
        graph_of(model, tools=failing(TOOLS, ["c1"]), database=database), "A and Z-9?"
    )
    assert state["answer"]["message"].splitlines() == [
        "I could not check order A: the service failed.",
        "There is no order Z-9 on your account.",
    ]


async def test_all_calls_may_fail(database: Database) -> None:
    model = Scripted(calling(*THREE), answering(opening="Let me see."))
    tools = failing(TOOLS, ["c1", "c2", "c3"])
    state = await ask(graph_of(model, tools=tools, database=database), "A, B and A-18?")
    assert {card["source"] for card in state["answer"]["cards"]} == {"default"}
    assert state["answer"]["message"].count("could not check") == 3
    assert state["answer"]["status"] == "answered"


async def test_an_unknown_tool_is_an_error_of_its_own_call(database: Database) -> None:
    model = Scripted(
        calling(("c1", "drop_tables", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"})),
        answering(),
    )
    state = await ask(graph_of(model, database=database), "A and B?")
    assert results_of(state) == {"1/c1": ("", "unknown_tool"), "1/c2": ("B", "ok")}


@pytest.mark.parametrize("name", ["get_{order}", "{subject}", "{}", "{message}", "a\nb", "", "{x"])
async def test_a_tool_name_cannot_break_the_answer(name: str, database: Database) -> None:
    model = Scripted(
        calling(("c1", name, {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"})),
        answering(),
    )
    state = await ask(graph_of(model, database=database), "A and B?")
    assert results_of(state)["1/c1"] == ("", "unknown_tool")
    text = cards_of(state)["c1"]["text"]
    assert text.startswith("I could not check")
    assert not {"{", "}", "\n"} & set(text)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("order_A_is_refunded", {"order_id": "A"}),
        ("get_order", {"order_id": "A was refunded, you get 200 EUR", "x": 1}),
        ("get_order", {"order_id": "A\nOrder B was refunded", "x": 1}),
    ],
)
async def test_a_call_that_was_not_made_puts_none_of_the_models_claims_into_the_answer(
    name: str, arguments: dict[str, Any], database: Database
) -> None:
    model = Scripted(calling(("c1", name, arguments)), answering())
    state = await ask(graph_of(model, database=database), "And A?")
    assert "refunded" not in state["answer"]["message"]


@pytest.mark.parametrize("order_id", _OTHER)
async def test_a_tool_that_answers_about_something_else_is_caught(
    order_id: str, database: Database
) -> None:
    model = Scripted(
        calling(("c1", "find", {"order_id": order_id}), ("c2", "find", {"order_id": "B"})),
        answering(("c1", "{order_id} {city}"), ("c2", "{order_id} {city}")),
    )
    state = await ask(graph_of(model, tools=[find], database=database), "And these?")
    assert results_of(state) == {"1/c1": (order_id, "wrong_subject"), "1/c2": ("B", "ok")}
    assert "Vienna" not in cards_of(state)["c1"]["text"]
    assert cards_of(state)["c2"]["text"] == "B Vienna"


class Chapter(BaseModel):
    topic: str


@tool(subject="topic", required=("topic",), sentence="{topic}")
async def read_chapter(ctx: Context, topic: str) -> Chapter:
    """A tool about something that is no order."""
    return Chapter(topic=topic)


@pytest.mark.parametrize("topic", ["returns", "Our returns", "Größe", "№ 5", "a" * 100])
async def test_a_subject_need_not_be_an_order(topic: str, database: Database) -> None:
    model = Scripted(calling(("c1", "read_chapter", {"topic": topic})), answering())
    state = await ask(graph_of(model, tools=[read_chapter], database=database), "Returns?")
    assert results_of(state) == {"1/c1": (topic, "ok")}


@dataclass(frozen=True)
class MixedUpShop:
    """A shop whose service gives away the data of another order."""

    shop: Shop
    orders: dict[str, str] = field(default_factory=dict)
    parcels_of: dict[str, str] = field(default_factory=dict)

    async def customer(self, customer_id: str) -> Customer | None:
        return await self.shop.customer(customer_id)

    async def order(self, order_id: str) -> Order | None:
        return await self.shop.order(self.orders.get(order_id, order_id))

    async def orders_of(self, customer_id: str) -> list[Order]:
        return await self.shop.orders_of(customer_id)

    async def parcels(self, order: Order) -> list[Parcel]:
        other = await self.shop.order(self.parcels_of.get(order.order_id, order.order_id))
        assert other is not None
        return await self.shop.parcels(other)


def _mixed_up(model: Scripted, database: Database, **swaps: dict[str, str]) -> Graph:
    return graph_of(model, database=database, shop=MixedUpShop(SqlShop(database), **swaps))


async def test_a_shop_that_answers_about_another_order_is_caught(database: Database) -> None:
    model = Scripted(calling(*THREE), answering(("c1", "{order_id} {status}")))
    state = await ask(_mixed_up(model, database, orders={"A": "B"}), "A, B and A-18?")
    assert results_of(state) == {
        "1/c1": ("A", "wrong_subject"),
        "1/c2": ("B", "ok"),
        "1/c3": ("A-18", "ok"),
    }
    assert cards_of(state)["c1"]["text"] == (
        "I could not check order A: the service answered about something else."
    )
    assert "87.15" not in repr(state["results"]["1/c1"])


async def test_a_shop_that_gives_another_orders_parcels_is_caught(database: Database) -> None:
    model = Scripted(calling(*THREE), answering(("c3", "{order_id} {parcels}")))
    state = await ask(_mixed_up(model, database, parcels_of={"A-18": "B"}), "A, B and A-18?")
    assert results_of(state)["1/c3"] == ("A-18", "wrong_subject")
    assert results_of(state)["1/c1"] == ("A", "ok")
    assert "Kestrel" not in repr(state["results"]["1/c3"])


async def test_a_shop_that_gives_somebody_elses_order_is_not_believed(database: Database) -> None:
    model = Scripted(calling(*THREE), answering())
    state = await ask(_mixed_up(model, database, orders={"A": "D-300"}), "A, B and A-18?")
    assert results_of(state)["1/c1"] == ("A", "not_found")
    assert "D-300" not in repr(state)


async def test_a_comparison_never_mixes_in_another_order(database: Database) -> None:
    model = Scripted(calling(("c1", "compare_orders", {"order_ids": ["A", "B"]})), answering())
    state = await ask(_mixed_up(model, database, orders={"A": "A-17"}), "A and B together?")
    assert results_of(state) == {"1/c1": ("", "wrong_subject")}


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


async def test_a_rule_of_the_shop_is_told_in_its_own_words(database: Database) -> None:
    @tool(subject="order_id", required=("order_id",), sentence="{order_id}")
    async def strict(ctx: Context, order_id: OrderId) -> View:
        """Has its rules."""
        raise (Refused("Gift orders are not shown.") if order_id == "A" else NotFound("Gone."))

    model = Scripted(
        calling(("c1", "strict", {"order_id": "A"}), ("c2", "strict", {"order_id": "B"})),
        answering(),
    )
    state = await ask(graph_of(model, tools=[strict], database=database), "A and B?")
    assert results_of(state) == {"1/c1": ("A", "refused"), "1/c2": ("B", "not_found")}
    assert cards_of(state)["c1"]["text"] == "Gift orders are not shown."


class Picky(BaseModel):
    code: str

    @field_validator("code")
    @classmethod
    def _broken(cls, code: str) -> str:
        if code == "A":
            raise KeyError("hunter2")
        if code == "B":
            raise ValueError("it must be C")
        return code


@tool(required=("order_id",), sentence="{order_id}")
async def pick(ctx: Context, picky: Picky) -> View:
    """Has a schema whose check is broken."""
    return View(order_id=picky.code)


async def test_a_broken_check_of_arguments_is_an_error_of_its_own_call(
    database: Database,
) -> None:
    model = Scripted(
        calling(*((f"c{n}", "pick", {"picky": {"code": c}}) for n, c in enumerate("ABC"))),
        answering(),
    )
    state = await ask(graph_of(model, tools=[pick], database=database), "Well?")
    kinds = {key: kind for key, (_, kind) in results_of(state).items()}
    assert kinds["1/c0"] in ("service_error", "invalid_arguments")
    assert (kinds["1/c1"], kinds["1/c2"]) == ("invalid_arguments", "ok")
    assert "it must be C" in told(model.last)[1][1]["error"]["message"]
    assert "hunter2" not in repr(state)


async def test_a_tool_that_returns_something_else_than_it_declares_fails(
    database: Database,
) -> None:
    @tool(subject="order_id", required=("order_id",), sentence="{order_id}")
    async def odd(ctx: Context, order_id: OrderId) -> View:
        """Returns a plain dictionary."""
        return {"order_id": order_id}  # type: ignore[return-value]

    model = Scripted(calling(("c1", "odd", {"order_id": "A"})), answering())
    state = await ask(graph_of(model, tools=[odd], database=database), "And A?")
    assert results_of(state) == {"1/c1": ("A", "service_error")}


class Odd(BaseModel):
    order_id: str
    when: date
    price: Decimal
    note: str | None
    list_: list[int]


async def test_values_reach_the_model_in_one_form(database: Database) -> None:
    @tool(subject="order_id", required=("order_id",), sentence="{order_id} {when}")
    async def odd(ctx: Context, order_id: OrderId) -> Odd:
        """Returns every kind of value."""
        day = date(2026, 11, 30)
        return Odd(order_id=order_id, when=day, price=Decimal("1.10"), note=None, list_=[])

    model = Scripted(calling(("c1", "odd", {"order_id": "A"})), answering())
    state = await ask(graph_of(model, tools=[odd], database=database), "And A?")
    data: dict[str, Any] = {
        "order_id": "A",
        "when": "2026-11-30",
        "price": "1.10",
        "note": None,
        "list_": [],
    }
    assert told(model.last) == [("c1", {"status": "ok", "order_id": "A", "data": data})]
    assert state["answer"]["message"] == "A November 30, 2026"


@pytest.mark.parametrize(
    "typed", [" a-17 ", "Ａ－１７", "A‑17", "#a-17", "A\u200b-17", "a\u00a0-\u00a017"]
)
async def test_an_id_is_the_same_order_however_it_is_typed(typed: str, database: Database) -> None:
    model = Scripted(calling(("c1", "get_order", {"order_id": typed})), answering())
    state = await ask(graph_of(model, database=database), "And my order?")
    assert results_of(state) == {"1/c1": ("A-17", "ok")}
    assert state["results"]["1/c1"]["arguments"] == {"order_id": "A-17"}


@pytest.mark.parametrize("typed", ["А-17", "A17", "A-017", "A-1", "A-17-", "Α-17"])
async def test_an_id_that_only_looks_alike_is_no_other_order(
    typed: str, database: Database
) -> None:
    model = Scripted(calling(("c1", "get_order", {"order_id": typed})), answering())
    state = await ask(graph_of(model, database=database), "And my order?")
    assert [kind for _, kind in results_of(state).values()] == ["not_found"]


async def test_leading_zeros_make_another_order(database: Database) -> None:
    model = Scripted(
        calling(
            ("c1", "get_order", {"order_id": "00123"}),
            ("c2", "get_order", {"order_id": "123"}),
            ("c3", "get_order", {"order_id": 123}),
        ),
        answering(),
    )
    state = await ask(graph_of(model, customer="C-1002", database=database), "And 00123?")
    assert list(results_of(state).values()) == [
        ("00123", "ok"),
        ("123", "not_found"),
        ("", "invalid_arguments"),
    ]


async def test_a_step_that_runs_again_leaves_one_result_for_each_call(database: Database) -> None:
    model = Scripted(calling(*THREE), answering())
    graph = graph_of(model, database=database)
    await graph.ainvoke(question("A, B and A-18?"), config_of(), interrupt_after=["call"])
    before = await graph.aget_state(config_of())
    for _ in range(2):
        state = await graph.ainvoke(None, before.config, interrupt_after=["model"])
        assert [id_ for id_, _ in told(state["messages"])] == ["c1", "c2", "c3"]
    await graph.ainvoke(None, config_of())
    assert len(results_of((await graph.aget_state(config_of())).values)) == 3
    assert [id_ for id_, _ in told(model.last)] == ["c1", "c2", "c3"]
