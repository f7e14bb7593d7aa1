"""No person is in a trace or a log: marks are planted wherever words can come from, and none is in
any byte that is sent or written. All of them are invented.
"""

import asyncio
import base64
import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from agent.traces_shape import shape
from tests import commands
from tests.ingest import Ingest, ingest, metadata
from tests.scripted import Scripted, answering, calling
from tests.test_tracing import traced
from tests.turns import failing, graph_of, own
from tools.registry import TOOLS, WRITES

KINDS: list[Callable[[int], str | int]] = [
    lambda n: f"Marlowe Quint{n}",
    lambda n: f"Žofie Nováková{n}",
    lambda n: f"marlowe{n}@mail.example",
    lambda n: f"+49 170 55501{n:02}",
    lambda n: 491705550100 + n,
    lambda n: f"улица Лесная, дом {n}, кв. 9",
]
PLACES = (
    *("question", "arguments", "data", "error", "metadata", "key"),
    *("thread", "run_name", "tag", "nested"),
)
NUMBERS = count(1)
MARKS = {place: [kind(next(NUMBERS)) for kind in KINDS] for place in PLACES}
CALL = ("call_m", "get_order", {"order_id": "A-17"})
READS = [CALL, ("call_n", "get_delivery", {"order_id": "B-21"})]


def config(thread: str = "") -> Any:
    """What a client of a server may send along, marks wherever it can put words."""
    nested = json.dumps({"deep": [{"deeper": MARKS["nested"]}]})
    return {
        "run_name": str(MARKS["run_name"]),
        "tags": list(map(str, MARKS["tag"])),
        "metadata": {
            "turn": MARKS["metadata"][4],
            "policy_version": str(MARKS["metadata"][0]),
            "who": MARKS["metadata"],
            "json": nested,
            "escaped": json.dumps(nested),
            "ls_model_name": MARKS["metadata"][1],
            **{str(mark): mark for mark in MARKS["key"]},
        },
        "configurable": {"thread_id": f"{MARKS['thread']}{thread}", "note": MARKS["thread"][2]},
    }


def question() -> HumanMessage:
    return HumanMessage(f"A-17 and B-21? {MARKS['question']}", name=str(MARKS["question"][0]))


def called(*calls: tuple[str, str, dict[str, Any]]) -> AIMessage:
    """The model's calls, with marks among and in their arguments."""
    more = {"note": MARKS["arguments"], "n": MARKS["arguments"][4], str(MARKS["key"][2]): 1}
    wrong = ("call_w", "get_order", {"order_id": str(MARKS["arguments"]), **more})
    unknown = ("call_u", str(MARKS["arguments"][0]), more)
    return calling(*calls, wrong, unknown)


class Outage(Exception):
    def __repr__(self) -> str:
        return f"{MARKS['error'][0]} says {MARKS['error']}"

    __str__ = __repr__


Turn = Callable[[Any], Awaitable[None]]


def graph(*said: AIMessage, **options: Any) -> Any:
    return graph_of(Scripted(*said), **options)


async def single(database: str) -> None:
    await _invoke(graph(called(CALL), answering(), database=database))


async def parallel(database: str) -> None:
    many = [(f"call_{n}", "get_order", {"order_id": "A-17"}) for n in range(20)]
    await _invoke(graph(called(*many, *READS), answering(), database=database))


async def failed(database: str) -> None:
    tools = [*failing(TOOLS, ["call_m"], Outage()), *WRITES]
    await _invoke(graph(called(*READS), answering(), tools=tools, database=database))


async def retried(database: str) -> None:
    cut = AIMessage(str(MARKS["data"]), response_metadata={"finish_reason": "length"})
    await _invoke(graph(cut, called(CALL), answering(), database=database))


async def unavailable(database: str) -> None:
    named_so = type("MarloweQuint", (Exception,), {})
    await _invoke(graph_of(Scripted(Outage()), database=database))
    await _invoke(graph_of(Scripted(named_so()), database=database))


async def paused(database: str) -> None:
    await _pause(database)


async def resumed(database: str) -> None:
    asked = await _pause(database)
    pauses = (await asked.aget_state(config())).interrupts
    await asked.ainvoke(
        Command(resume={each.id: own(each, "confirm") for each in pauses}), config()
    )


async def streamed(database: str) -> None:
    asked = graph(called(*READS), answering(), database=database)
    modes: Any = ["updates", "custom", "values", "messages"]
    async for _ in asked.astream({"messages": [question()]}, config(), stream_mode=modes):
        pass


async def cancelled(database: str) -> None:
    asked = graph(called(CALL), answering(), tools=_slow(), database=database)
    turn = asyncio.create_task(_invoke(asked))
    await asyncio.sleep(0.5)
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)


async def _invoke(asked: Any) -> None:
    await asked.ainvoke({"messages": [question()]}, config())


async def _pause(database: str) -> Any:
    reason = {"order_id": "A-17", "reason": str(MARKS["arguments"])}
    asked = graph(calling(("call_m", "cancel_order", reason)), answering(), database=database)
    await _invoke(asked)
    return asked


def _slow() -> Any:
    async def run(*_: Any) -> Any:
        await asyncio.sleep(30)

    return [replace(tool, run=run) for tool in TOOLS]


TURNS = [single, parallel, failed, retried, unavailable, paused, resumed, streamed, cancelled]


def found(said: bytes) -> list[str | int]:
    """The marks in what was said: as they are, and as JSON and base64 write them."""
    assert sum(map(len, MARKS.values())) == 60
    return [
        mark
        for marks in MARKS.values()
        for mark in marks
        if any(form in said for form in _forms(str(mark)))
    ]


def _forms(mark: str) -> Iterator[bytes]:
    yield mark.encode()
    yield json.dumps(mark)[1:-1].encode()
    yield json.dumps(json.dumps(mark)[1:-1])[1:-1].encode()
    yield base64.b64encode(mark.encode()).rstrip(b"=")[:-1]


@pytest.fixture
def server() -> Iterator[Ingest]:
    with ingest() as here:
        yield here


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__)
async def test_no_mark_is_in_any_byte_that_is_sent_or_logged(
    turn: Callable[[str], Awaitable[None]],
    server: Ingest,
    demo_file: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "agent")
    caplog.set_level(logging.DEBUG, "tools")
    file = shutil.copy(demo_file, tmp_path / "shop.db")
    _mark_the_shop(file)
    with traced(server, tmp_path / "traces") as client:
        await turn(f"sqlite:///{file}")
        client.flush()
    sent = b"".join(server.sent)
    assert found(sent) == []
    assert b"Marlowe" not in sent
    assert found(caplog.text.encode()) == []
    assert server.roots
    _check_whole(server)
    if turn is not unavailable:
        assert b"call_m" in sent


async def test_where_ids_are_allowed_words_in_their_place_are_not(
    server: Ingest, tmp_path: Path
) -> None:
    with traced(server, tmp_path / "traces", trace_ids=True) as client:
        await _invoke(graph(called(CALL), answering()))
        client.flush()
    sent = b"".join(server.sent)
    assert found(sent) == []
    assert b'"A-17"' in sent


async def test_what_a_client_sends_stands_for_no_count_no_model_and_no_id(
    server: Ingest, tmp_path: Path
) -> None:
    forged = {
        "turn": 10115,
        "round": 10116,
        "attempt": 10117,
        "ls_model_name": "Marlowe.Quint",
        "ls_provider": "Quint",
        "usage_metadata": {"input_tokens": 491705550100, "output_tokens": 1},
    }
    said = calling(CALL, id="Marlowe Quint, Lesnaya 9")
    with traced(server, tmp_path / "traces") as client:
        asked = {"messages": [question()]}
        await graph(said, answering()).ainvoke(asked, {**config(), "metadata": forged})
        client.flush()
    sent = b"".join(server.sent)
    words = (b"Quint", b"49170", b"10115", b"10116", b"10117")
    assert [word for word in words if word in sent] == []
    assert {(metadata(run)["turn"], metadata(run)["round"]) for run in server.of_type("llm")} == {
        (1, 1),
        (1, 2),
    }


@pytest.mark.parametrize("switch", ["true", ""])
def test_a_program_that_builds_the_graph_tells_no_person_either(
    switch: str, server: Ingest
) -> None:
    """Whether tracing is switched on by the environment, or by the program later."""
    program = """
import asyncio
from langchain_core.messages import HumanMessage
from langsmith import tracing_context
from agent.graph import build_graph
from agent.identity import stated
from agent.settings import Settings

graph = build_graph(settings=Settings(), identity=stated("C-1001"))
with tracing_context(enabled=True):
    asyncio.run(graph.ainvoke({"messages": [HumanMessage("A-17? Marlowe Quint")]}))
"""
    variables = {**server.variables, "LANGSMITH_TRACING": switch}
    done = subprocess.run(
        [commands.COMMAND[0], "-c", program],
        env=commands.environment(**variables),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert server.of_type("tool")
    assert b"Marlowe" not in b"".join(server.sent)


async def test_the_marks_are_found_where_words_are_allowed(
    server: Ingest, demo_file: Path, tmp_path: Path
) -> None:
    file = shutil.copy(demo_file, tmp_path / "shop.db")
    _mark_the_shop(file)
    with traced(server, tmp_path / "traces", trace_content=True) as client:
        await single(f"sqlite:///{file}")
        await unavailable(f"sqlite:///{file}")
        client.flush()
    kept = set(found(b"".join(server.sent)))
    missed = {place for place, marks in MARKS.items() if not kept & set(marks)}
    assert missed <= {"run_name"}  # names are from a list all the same


def _mark_the_shop(file: Path | str) -> None:
    with closing(sqlite3.connect(file)) as shop, shop:
        shop.execute("UPDATE orders SET note = ?", [str(MARKS["data"])])


def _check_whole(server: Ingest) -> None:
    """Every run ended, and stands under one that was sent too; ids are each call's own."""
    for run in server.runs.values():
        assert run.get("end_time"), run
        assert run.get("parent_run_id", run["trace_id"]) in server.runs
    made = [metadata(run) for run in server.of_type("tool")]
    assert all(each["call_id"].startswith("call_") for each in made)


def test_a_killed_process_leaves_its_trace_to_be_sent(server: Ingest, tmp_path: Path) -> None:
    server.answer = None
    process = commands.start("ask", f"A-17? {MARKS['question']}", "--json", **server.variables)
    folder = tmp_path / "support-agent-traces"
    while not any('"tool"' in file.read_text() for file in folder.glob("*.jsonl")):
        assert process.poll() is None, "it ended before it made a call"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    commands.finish(process)
    [left] = folder.glob("*.jsonl")
    assert found(left.read_bytes()) == []

    server.answer = (202, {})
    done = commands.run("traces", "send", **server.variables)
    assert done.code == 0, done.err
    assert not list(folder.glob("*.jsonl"))
    _check_whole(server)
    assert found(b"".join(server.sent)) == []


def test_the_applications_own_objects_stay_as_they_are() -> None:
    run: Mapping[str, Any] = {
        "id": "01a22c06-e9ee-7410-ac90-fc2815446c89",
        "name": "x",
        "run_type": "chain",
        "inputs": {"a": [1, {"b": 2}]},
        "extra": {"metadata": {"turn": 1}},
    }
    before = json.dumps(run)
    shape(run)
    assert json.dumps(run) == before
