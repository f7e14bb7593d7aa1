"""How many turns a second one process answers, beside create_agent on the same savers.

    python -m benchmarks.throughput [--conversations 1 8 64] [--runs 5] [--on sqlite …]

A conversation asks TURNS questions one after the other, each answered by a scripted model with two
calls of one tool and a last message; neither takes any time, so that what is left is the framework
and the saver. `support-agent` keeps its journal too, except on memory, and has the saver that the
command line opens; "langgraph's saver" is the same on the one that create_agent has. Each commit
waits for the disk, for all of them. They take turns in one process. Printed are the median of the
runs, the slowest and the fastest of them, and the median of their ratios to create_agent.
"""

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.checkpoints import open_saver
from agent.graph import build_graph
from agent.identity import stated
from agent.settings import Settings
from agent.store import open_database
from benchmarks.fan_out import OneRound
from tests.postgres import server

TURNS = 3
AT_LEAST = 24  # conversations in a run, so that a run of few is no shorter than the noise
PEER = "create_agent"
NAMES = ("ours", "theirs", "peer")  # of the databases
_threads = iter(range(10**9))


@tool
async def look_up(number: int, calls: int) -> str:
    """Looks one thing up."""
    return f"result {number}"


def _ours(saver: Any, database: Any = None) -> Any:
    model, who = OneRound(calls=2), stated("C-1001")
    options: Any = {"checkpointer": saver, "database": database, "settings": Settings()}
    return build_graph(model=model, tools=[look_up], identity=who, **options)


def _create_agent(saver: Any) -> Any:
    from langchain.agents import create_agent

    return create_agent(OneRound(calls=2), [look_up], checkpointer=saver)


@asynccontextmanager
async def _on_memory() -> AsyncIterator[dict[str, Any]]:
    yield {"support-agent": _ours(InMemorySaver()), PEER: _create_agent(InMemorySaver())}


@asynccontextmanager
async def _on_sqlite() -> AsyncIterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        urls = [f"sqlite:///{folder}/{name}.db" for name in NAMES]
        async with _kept(urls, AsyncSqliteSaver) as graphs:
            yield graphs


@asynccontextmanager
async def _on_postgresql() -> AsyncIterator[dict[str, Any]]:
    with server() as running:
        running.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
        for name in NAMES:
            running.execute(f"CREATE DATABASE {name}")
        async with _kept([*map(running.database, NAMES)], AsyncPostgresSaver) as graphs:
            yield graphs


@asynccontextmanager
async def _kept(urls: list[str], saver: Any) -> AsyncIterator[dict[str, Any]]:
    """All on databases of their own, so that none meets another's locks."""
    ours, theirs = open_database(urls[0]), open_database(urls[1])
    async with AsyncExitStack() as opened:
        opened.push_async_callback(ours.close)
        opened.push_async_callback(theirs.close)
        own = await opened.enter_async_context(open_saver(ours))
        await theirs.prepare()
        places = [url.removeprefix("sqlite:///") for url in urls[1:]]  # a path for SQLite's
        others = [await opened.enter_async_context(saver.from_conn_string(p)) for p in places]
        for each in others:
            await each.setup()
        yield {
            "support-agent": _ours(own, ours),
            "langgraph's saver": _ours(others[0], theirs),
            PEER: _create_agent(others[1]),
        }


SAVERS: dict[str, Callable[[], Any]] = {
    "memory": _on_memory,
    "sqlite": _on_sqlite,
    "postgresql": _on_postgresql,
}


async def _converse(graph: Any) -> None:
    thread: Any = {"configurable": {"thread_id": f"t{next(_threads)}"}}
    for _ in range(TURNS):
        state = await graph.ainvoke({"messages": [HumanMessage("Well?")]}, thread)
        assert state["messages"][-1].type == "ai"


async def _turns_a_second(graph: Any, at_once: int) -> float:
    conversations = max(at_once, AT_LEAST)
    waiting = iter(range(conversations))

    async def one_after_another() -> None:
        for _ in waiting:
            await _converse(graph)

    gc.collect()
    began = time.perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
    return TURNS * conversations / (time.perf_counter() - began)


async def _table(where: str, conversations: list[int], runs: int) -> None:
    async with SAVERS[where]() as graphs:
        gc.collect()
        gc.freeze()  # as a server does once it has started
        for at_once in conversations:
            seen: dict[str, list[float]] = {name: [] for name in graphs}
            for run in range(runs + 1):
                for name in [*graphs][:: 1 if run % 2 else -1]:
                    seen[name].append(await _turns_a_second(graphs[name], at_once))
            _print(where, at_once, {name: speeds[1:] for name, speeds in seen.items()})


def _print(where: str, at_once: int, seen: dict[str, list[float]]) -> None:
    for name, speeds in seen.items():
        ratio = statistics.median(a / b for a, b in zip(speeds, seen[PEER], strict=True))
        print(
            f"{where:10}  {at_once:13}  {name:17}  {statistics.median(speeds):7.0f}"
            f"  {min(speeds):5.0f}–{max(speeds):<5.0f}  {ratio:5.2f}",
            flush=True,
        )


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--conversations", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--on", nargs="+", choices=SAVERS, default=[*SAVERS])
    options = parser.parse_args()
    print("saver       conversations  contender          turns/s  range        ratio")
    for where in options.on:
        await _table(where, options.conversations, options.runs)


if __name__ == "__main__":
    asyncio.run(main())
