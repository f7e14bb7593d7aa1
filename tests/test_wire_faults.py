"""What can go wrong on the wire, at a real socket, through the whole graph, on three protocols."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent.graph import Graph
from agent.history.langchain import check
from agent.report import report
from agent.wire.connect import connect
from tests.demo_data import check_only
from tests.fault_server import (
    Exchange,
    FaultServer,
    changed,
    delivery,
    finishing,
    says,
    serving,
    whole,
)
from tests.faults import BROKEN, REFUSED, ROWS, TWO, Row, counting, table
from tests.streams import BUILD
from tests.turns import Watched, ask, graph_of, watch
from tests.vendors import Asked
from tools.database import Database
from tools.registry import TOOLS
from tools.tool import Arguments, Context, Tool

# Some of the rows, and what the log names them.
KINDS = {
    "a clean end within a call": "stream_interrupted",
    "an id for two calls": "ambiguous_calls",
    "status 500": "model_unavailable",
    "a number for an id": "invalid_arguments",
    "a tool that does not exist": "unknown_tool",
    "the shop fails for one order": "service_error",
    "the shop is silent on one order": "timeout",
}
QUESTION = "Where are orders A-17 and B-21?"
ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked again is asked again at once."""
    monkeypatch.setattr("agent.asking.BACK_OFF", 0.001)
    # No connection here is encrypted, and reading certificates would be most of the time.
    monkeypatch.setattr("ssl.SSLContext.load_verify_locations", lambda *_, **__: None)
    for vendor in ("openai", "anthropic"):
        monkeypatch.setattr(f"{vendor}._base_client.INITIAL_RETRY_DELAY", 0.001)


def graph_at(
    server: FaultServer,
    name: str,
    *,
    streamed: bool = True,
    more: Mapping[str, Any] | None = None,
    **options: Any,
) -> Graph:
    """The graph whose settings lead to the server."""
    settings = server.settings(name, **(more or {}))
    model = connect(settings).model_copy(update={"streaming": streamed})
    return graph_of(model, settings=settings, **options)


def noting(tools: Sequence[Tool], ran: list[str], shop: Mapping[str, str]) -> list[Tool]:
    """The tools, noting which order each run is about; for some orders the shop is at fault."""

    def noted(tool: Tool) -> Tool:
        async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
            order = str(arguments.get("order_id", tool.name))
            ran.append(order)
            if shop.get(order) == "service_error":
                raise ConnectionError("the shop is out of order")
            if shop.get(order) == "timeout":
                await asyncio.Event().wait()
            return await tool.run(ctx, arguments, call_id)

        return replace(tool, run=run)

    return [noted(tool) for tool in tools]


def matrix(rows: Sequence[Row], *, brief: bool = False) -> list[Any]:
    """Each row on each protocol that has the fault.

    The short suite has them streamed, and on one protocol alone where that is brief.
    """
    return list(_matrix(rows, brief))


def _matrix(rows: Sequence[Row], brief: bool) -> Iterator[Any]:
    for row in rows:
        for name in BUILD:
            for streamed in (True, False):
                if row.on(name, streamed):
                    way = "streamed" if streamed else "whole"
                    short = streamed and (name == "chat" or not (row.long or brief))
                    marks = [] if short else [pytest.mark.long]
                    id_ = f"{row.fault}-{name}-{way}"
                    yield pytest.param(row, name, streamed, marks=marks, id=id_)


@pytest.mark.parametrize(("row", "name", "streamed"), matrix(ROWS))
async def test_a_fault_has_the_outcome_that_the_table_says(
    row: Row, name: str, streamed: bool, database: Database
) -> None:
    ran: list[str] = []
    options: Any = {"streamed": streamed, "database": database, "checkpointer": InMemorySaver()}
    with serving() as server:
        server.behave(*row.first, for_good=row.for_good)
        tools = noting(TOOLS, ran, row.shop)
        graph = graph_at(server, name, more=row.settings, tools=tools, **options)
        turn = await watch(graph, QUESTION)
        assert sorted(ran) == sorted(row.ran)
        _check_told(row, server.requests)
        _check_read(row, turn)
        server.behave()
        patient = graph_at(server, name, **options) if "stall_timeout" in row.settings else graph
        after = await ask(patient, "Where is order B?")
        _check_pairs(server.requests)
    check(after["messages"])
    assert after["answer"]["status"] == "answered"
    check_only(after["answer"]["message"], "B")


def _check_told(row: Row, requests: Sequence[Asked]) -> None:
    """What the turn's last request held of it."""
    results = [(id_, _kind(output)) for id_, output in requests[-1].results]
    assert [kind for _, kind in results] == [kind for _, kind in row.told]
    for (id_, _), (wanted, _) in zip(results, row.told, strict=True):
        assert fnmatchcase(id_, wanted)


def _check_read(row: Row, turn: Watched) -> None:
    """What the person reads, and what a program does."""
    answer = turn.state["answer"]
    check_only(answer["message"], *row.orders)
    for sentence in row.says:
        assert sentence in answer["message"]
    if not row.orders:
        assert answer["message"].split("\n") == list(row.says)
    assert "tomorrow" not in answer["message"]
    told = report("thread-1", turn.state)
    failed = told["error"] or {"kind": "", "message": ""}
    assert failed["kind"] == row.outcome
    assert told["status"] == ("failed" if row.outcome else "answered")
    assert "A-17" not in failed["message"]
    kinds = [call["error"]["kind"] if call["error"] else "ok" for call in told["calls"]]
    assert kinds[: len(row.told)] == [kind for _, kind in row.told]


def _check_pairs(requests: Sequence[Asked]) -> None:
    """In each request each call has one result, in the order of the calls, about its own order."""
    for batch in (batch for asked in requests for batch in asked.batches):
        assert [id_ for id_, _ in batch.results] == list(batch.calls)
        for id_, output in batch.results:
            if "order_id" in output and output["status"] == "ok":
                assert output["order_id"] == batch.calls[id_][1]["order_id"]


def _kind(output: Any) -> str:
    return str(output["error"]["kind"] if "error" in output else "ok")


PASSING = [row for row in (*BROKEN, *REFUSED) if row.fault != "status 400"]


@pytest.mark.parametrize(("row", "name", "streamed"), matrix(PASSING, brief=True))
async def test_what_fails_once_is_asked_again_in_the_same_words(
    row: Row, name: str, streamed: bool, database: Database
) -> None:
    ran: list[str] = []
    with serving() as server:
        assert row.for_good
        server.behave(*row.first, row.for_good)
        tools, more = noting(TOOLS, ran, {}), {"stall_timeout": 1} if row.settings else {}
        graph = graph_at(server, name, streamed=streamed, more=more, tools=tools, database=database)
        state = await ask(graph, QUESTION)
        first, again = server.requests[len(row.first) :][:2]
        _check_pairs(server.requests)
    assert first.body == again.body
    assert sorted(ran) == ["A-17", "B-21"]
    assert state["answer"]["status"] == "answered"
    check_only(state["answer"]["message"], "A-17", "B-21")


@pytest.mark.parametrize("fault", KINDS)
async def test_the_log_tells_outcomes_apart_and_holds_no_values(
    fault: str, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    [row] = [row for row in ROWS if row.fault == fault]
    with serving() as server, caplog.at_level(logging.INFO, "agent"):
        server.behave(*row.first, for_good=row.for_good)
        options: Any = {"tools": noting(TOOLS, [], row.shop), "database": database}
        await ask(graph_at(server, "chat", more=row.settings, **options), QUESTION)
    said = [r.getMessage() for r in caplog.records if r.name.startswith("agent")]
    assert {kind for kind in KINDS.values() if kind in "\n".join(said)} == {KINDS[fault]}
    assert "A-17" not in "\n".join(said)


# Ids.

LONG = "call_" + "x" * 59
IDS = {
    "64 characters": (LONG, LONG[:-1] + "y"),
    "65 and 85 characters that begin alike": (LONG + "y", LONG + "y" * 21),
    "dots and colons": ("functions.get:0", "functions:get.0"),
    "letters of other alphabets": ("call_é", "call_ж"),
    "like an item's": ("fc_a", "fc_b"),
}


CHANGES = [
    pytest.param(
        names,
        marks=[] if names[:2] == ("chat", "responses") else [pytest.mark.long],
        id="-".join(names),
    )
    for names in permutations(BUILD)
]


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("names", CHANGES)
async def test_calls_and_results_stay_linked_when_a_thread_changes_its_vendor(
    ids: tuple[str, str], names: tuple[str, ...], database: Database
) -> None:
    threads = InMemorySaver()
    with serving(whole(says(delivery(ids[0], "A-17"), delivery(ids[1], "B-21")))) as server:
        for name, question, orders in zip(names, QUESTIONS, ORDERS, strict=True):
            graph = graph_at(server, name, database=database, checkpointer=threads)
            state = await ask(graph, question)
            check_only(state["answer"]["message"], *orders)
        _check_pairs(server.requests)
        _check_one_name(server.requests)
    own = [call["id"] for m in state["messages"] for call in getattr(m, "tool_calls", ())]
    assert own[:2] == list(ids)


QUESTIONS = (QUESTION, "Where is order B?", "Where is order A-18?")
ORDERS = (("A-17", "B-21"), ("B",), ("A-18",))


def _check_one_name(requests: Sequence[Asked]) -> None:
    """A call has one id at a vendor, however often it is sent, and shares it with no other."""
    firsts = {(asked.name, tuple(asked.batches[0].calls)) for asked in requests if asked.batches}
    assert len(firsts) == len({name for name, _ in firsts})
    assert all(len(ids) == 2 for _, ids in firsts)


# Usage.


@pytest.mark.parametrize("told", ["once", "twice", "in every event"])
@pytest.mark.parametrize("name", BUILD)
async def test_usage_is_counted_once_however_often_a_stream_tells_it(
    name: str, told: str, database: Database
) -> None:
    assert await _used(name, told, database, streamed=True) == _wanted(name)


@pytest.mark.parametrize("name", BUILD)
async def test_usage_of_a_body_is_counted(name: str, database: Database) -> None:
    assert await _used(name, "once", database, streamed=False) == _wanted(name)


async def _used(name: str, told: str, database: Database, *, streamed: bool) -> Any:
    def last(exchange: Exchange) -> None:
        changed(finishing(exchange.asked), counting(told))(exchange)

    with serving(changed(TWO, counting(told)), last) as server:
        graph = graph_at(server, name, streamed=streamed, database=database)
        return (await ask(graph, QUESTION))["usage"]


def _wanted(name: str) -> dict[str, int]:
    """Of two responses; Messages does not tell thoughts apart."""
    thoughts = 0 if name == "messages" else 2
    return {
        "input_tokens": 20,
        "output_tokens": 4,
        "cached_tokens": 8,
        "reasoning_tokens": thoughts,
    }


def test_the_guide_has_the_table_as_it_is_tested() -> None:
    assert table() in (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
