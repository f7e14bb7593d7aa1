"""What becomes of a call that goes wrong (promise P4): its own error, and its siblings' data."""

import asyncio
import logging
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from tests.scripted import Scripted, answering, calling
from tests.turns import (
    THREE,
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
from tools.tool import Context, tool

pytestmark = pytest.mark.on_both("long")


class View(BaseModel):
    order_id: str
    city: str = "Vienna"


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
