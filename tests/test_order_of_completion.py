"""Whatever order calls finish in, each result stays with its own call (promise P1)."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given

from tests.completion import FOREIGN, UNKNOWN, Call, Run, holds
from tests.strategies import LONG, SHORT, runs
from tools.database import Database

pytestmark = pytest.mark.on_both("long")


def _calls(*calls: tuple[str, Any]) -> list[Call]:
    """Calls c1, c2, …, each given as (tool, order id or arguments)."""
    return [
        Call(f"c{place}", tool, about if isinstance(about, dict) else {"order_id": about})
        for place, (tool, about) in enumerate(calls, 1)
    ]


SAME_TOOL = _calls(
    *(("get_delivery", order_id) for order_id in ("A", "B", "A-17", "A-18", "B-21")),
    ("get_delivery", "A"),
)
MIXED = _calls(
    ("get_delivery", "B"),
    ("get_order", "A"),
    ("list_orders", {}),
    ("get_delivery", "A"),
    ("compare_orders", {"order_ids": ["A", "B"]}),
    ("get_order", "A-18"),
)


async def _every_order(calls: Sequence[Call], database: Database) -> None:
    ids = [call.call_id for call in calls]
    for finish in permutations(ids):
        await holds(Run(calls, finish, spoken=ids[::-1]), database)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("calls", [SAME_TOOL, MIXED], ids=["same tool", "mixed tools"])
async def test_every_order_of_completion(calls: list[Call], count: int, database: Database) -> None:
    await _every_order(calls[:count], database)


@pytest.mark.long
@pytest.mark.on_file
@pytest.mark.parametrize("count", [5, 6])
@pytest.mark.parametrize("calls", [SAME_TOOL, MIXED], ids=["same tool", "mixed tools"])
async def test_every_order_of_completion_of_more_calls(
    calls: list[Call], count: int, database: Database
) -> None:
    await _every_order(calls[:count], database)


@SHORT
@given(run=runs())
async def test_any_order_of_completion_of_any_calls(run: Run, database: Database) -> None:
    await holds(run, database)


@pytest.mark.long
@LONG
@given(run=runs())
async def test_any_order_of_completion_of_any_calls_at_length(run: Run, database: Database) -> None:
    await holds(run, database)


ORDERS = list(permutations(["c1", "c2", "c3"]))
THREE = _calls(("get_order", "A"), ("get_order", "B"), ("get_delivery", "A-18"))


@pytest.mark.parametrize("finish", ORDERS)
@pytest.mark.parametrize("broken", [{"c2"}, {"c1", "c3"}, {"c1", "c2", "c3"}])
async def test_failing_calls_keep_their_errors_and_leave_the_others_alone(
    finish: Sequence[str], broken: set[str], database: Database
) -> None:
    await holds(Run(THREE, finish, broken=broken, spoken=["c3", "c1"]), database)


@pytest.mark.parametrize("finish", ORDERS)
async def test_unknown_and_foreign_orders_keep_their_errors(
    finish: Sequence[str], database: Database
) -> None:
    calls = _calls(("get_order", UNKNOWN), ("get_order", "A"), ("get_order", FOREIGN))
    await holds(Run(calls, finish, spoken=["c2"]), database)


@pytest.mark.parametrize("finish", ORDERS)
async def test_equal_calls_are_each_answered_and_spoken_of_once(
    finish: Sequence[str], database: Database
) -> None:
    calls = _calls(("get_order", "B"), ("get_order", "A"), ("get_order", "B"))
    await holds(Run(calls, finish, spoken=["c1", "c2", "c3"]), database)


async def test_a_hundred_calls_share_tasks_and_keep_their_results(database: Database) -> None:
    orders = ["A", "B", "A-17", "A-18", "B-21"] * 20
    calls = _calls(*(("get_order", order_id) for order_id in orders))
    ids = [call.call_id for call in calls]
    await holds(Run(calls, ids[::-1], broken=ids[10:20], spoken=ids), database)
