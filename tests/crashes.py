"""Turns in processes of their own, which are stopped at named points of the code or at any moment.

    with Crashes() as crashes:
        [end] = crashes.run(Job(url, "decide", at="claim", when="after", how="kill"))
        assert end.code == KILLED

The product knows nothing of this: the process wraps the function that is named, then runs a turn as
the command line does. What is loaded once, and has run a turn, is forked for each job.
"""

import asyncio
import gc
import inspect
import json
import os
import pkgutil
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, astuple, dataclass, field
from functools import wraps
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.errors import EmptyInputError
from langgraph.types import Command
from sqlalchemy import make_url

from agent.cli import process, session
from agent.cli.session import CallDecision, Session, open_session
from agent.grouped_saver import GroupedSaver
from agent.history.langchain import check
from agent.problems import Problem
from agent.report import confirmations, report
from agent.settings import Settings
from tests.commands import environment
from tools.database import DatabaseProblem
from tools.shop.http import HttpShop
from tools.shop.sql import SqlShop

KILLED = -signal.SIGKILL
STOPPED = 143  # by SIGTERM, in order
THREAD = "t-crash"
BOTH = "Please cancel order A-17 and refund 10 USD of order B, it arrived broken. Where is order A?"
SAVERS = {"sqlite": GroupedSaver, "postgresql": AsyncPostgresSaver}

# By name, what is wrapped. "saver" and "shop" stand for the classes that the job uses.
POINTS = {
    "admission": "agent.nodes:Nodes._admit",
    "turn": "agent.journal:ThreadJournal.begin_turn",
    "request": "agent.nodes:ask",
    "question": "agent.ledger:Ledger.check",
    "look-up": "agent.ledger:Ledger.look_up",
    "confirmation": "agent.writing:Writer._begin",
    "claim": "agent.ledger:Ledger._claim",
    "claim row": "agent.rows:add",
    "cancel": "shop:cancel",
    "refund": "shop:refund",
    "done": "agent.rows:move",
    "commit": "agent.ledger:Ledger._run",
    "result": "agent.nodes:Nodes.call",
    "checkpoint": "saver:aput",
    "pending write": "saver:aput_writes",
    "round": "agent.nodes:Nodes.close_round",
    "round kept": "agent.journal:ThreadJournal.keep",
    "answer": "agent.journal:ThreadJournal.end_turn",
}


@dataclass(frozen=True)
class Job:
    """One process. do: one of `DEEDS`, with a text where it says something.

    answers: what the pauses of the thread are answered with, as a client keeps it. at, when, nth: a
    point, "before" or "after" its nth time; how: what happens there, one of `STOPS`. after: seconds
    before it starts; kill: seconds from then until it is killed. busy: seconds that it waits for a
    database that is in use.
    """

    url: str
    do: str
    text: str = ""
    thread: str = THREAD
    answers: dict[str, Any] = field(default_factory=dict)
    at: str = ""
    when: str = "before"
    nth: int = 1
    how: str = "kill"
    shop_url: str = ""
    shop_token: str = ""
    tool_timeout: float = 10
    after: float = 0
    kill: float | None = None
    busy: float | None = None

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.thread}}

    @property
    def settings(self) -> Settings:
        shop = {"shop_url": self.shop_url or None, "shop_token": self.shop_token or None}
        about = {"database_url": self.url, "tool_timeout": self.tool_timeout}
        return Settings.model_validate({"model": "offline", **about, **shop})


@dataclass(frozen=True)
class End:
    """What a process left: its exit code and, unless it was stopped, what came of its deed."""

    code: int
    said: dict[str, Any]


class Crashes:
    """The process that the jobs are forked from."""

    def __enter__(self) -> "Crashes":
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.crashes"],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, *jobs: Job) -> list[End]:
        """All at once; how each of them ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([asdict(job) for job in jobs]), file=self._process.stdin, flush=True)
        return [End(*end) for end in json.loads(self._process.stdout.readline())]


async def _ask(job: Job, here: Session) -> Any:
    """A message, as on the command line."""
    return await here.ask(job.thread, job.text, _unwatched)


async def _decide(job: Job, here: Session) -> Any:
    """Yes to what waits, or to what waited once, as on the command line."""
    waits = await here.pending(job.thread) or list(job.answers.values())
    yes = [CallDecision(each["call_id"], True) for each in waits]
    return await here.decide(job.thread, yes, _unwatched)


async def _invoke(what: Any, job: Job, here: Session) -> None:
    with suppress(EmptyInputError):  # nothing of the turn was kept
        await here.graph.ainvoke(what, job.config)


async def _same(job: Job, here: Session) -> None:
    """The very answers that were given before, whatever waits by now: a client tries again."""
    await _invoke(Command(resume=job.answers), job, here)


async def _go_on(job: Job, here: Session) -> None:
    """What LangGraph calls resuming."""
    await _invoke(None, job, here)


async def _send(job: Job, here: Session) -> None:
    """A message without the command line's door, as a server takes it."""
    await _invoke({"messages": [HumanMessage(job.text)]}, job, here)


DEEDS: dict[str, Callable[[Job, Session], Any]] = {
    "ask": _ask,
    "decide": _decide,
    "same": _same,
    "go on": _go_on,
    "send": _send,
}


def _unwatched(event: object) -> None: ...


async def _carry_out(job: Job) -> dict[str, Any]:
    """What a client sees of the thread afterwards, and the sentence that it was told."""
    turn: list[asyncio.Task[Any]] = []
    _arm(job, turn)
    async with open_session(job.settings, None) as here:
        turn.append(asyncio.create_task(DEEDS[job.do](job, here)))
        try:
            await turn[0]
        except asyncio.CancelledError:
            if job.how != "cancel":
                raise
        except (Problem, DatabaseProblem) as problem:
            return {"problem": str(problem)}
        return await _left(job, here)


async def _left(job: Job, here: Session) -> dict[str, Any]:
    """The turn as it is told, and what answers the pauses. A turn that ended left a history."""
    state = await here.graph.aget_state(job.config)
    values, waits = state.values, confirmations(state.values, state.interrupts)
    if values.get("answer"):
        check(values["messages"])
    ended = waits or values.get("answer")
    yes = [CallDecision(each["call_id"], True) for each in waits]
    return {
        "report": report(job.thread, values, state.interrupts) if ended else {},
        "answers": session.answers(waits, yes) if waits else {},
    }


def _arm(job: Job, turn: list[asyncio.Task[Any]]) -> None:
    """Wraps the function at the job's point. One that is not there any more raises."""
    if not job.at:
        return
    if job.busy is not None:
        _connect_with(timeout=job.busy)
    module, _, path = POINTS[job.at].partition(":")
    *path_to, name = path.split(".")
    named = {"saver": SAVERS[job.url.split(":")[0]], "shop": HttpShop if job.shop_url else SqlShop}
    owner = named.get(module) or pkgutil.resolve_name(":".join([module, *path_to]))
    left = [job.nth]

    def reach() -> None:
        left[0] -= 1
        if left[0] == 0:
            STOPS[job.how](job, turn)

    setattr(owner, name, _wrapped(getattr(owner, name), job.when == "before", reach))


def _wrapped(function: Any, before: bool, reach: Callable[[], None]) -> Any:
    @wraps(function)
    async def awaited(*arguments: Any, **named: Any) -> Any:
        if before:
            reach()
        done = await function(*arguments, **named)
        if not before:
            reach()
        return done

    assert inspect.iscoroutinefunction(function), f"{function} is not what is awaited"
    return awaited


def _kill(job: Job, turn: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _terminate(job: Job, turn: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _cancel(job: Job, turn: list[asyncio.Task[Any]]) -> None:
    turn[0].cancel()


def _lock(job: Job, turn: object) -> None:
    """Another program writes, for longer than anybody waits."""
    _held.append(sqlite3.connect(_file(job), isolation_level=None))
    _held[0].execute("BEGIN IMMEDIATE")


def _fill(job: Job, turn: object) -> None:
    """No file may grow."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def _protect(job: Job, turn: object) -> None:
    """Whoever opens the database from now on may only read it."""
    _connect_with("file:{}?mode=ro", uri=True)


def _lose(job: Job, turn: object) -> None:
    """The server breaks all connections off."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(job.url) as db:
        db.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")


def _restart(job: Job, turn: object) -> None:
    """The server starts again, as it does when one of its processes was killed."""
    with closing(psycopg.connect(job.url)) as witness, closing(psycopg.connect(job.url)) as killed:
        os.kill(killed.info.backend_pid, signal.SIGKILL)
        with suppress(psycopg.OperationalError):
            witness.execute("SELECT pg_sleep(60)")
    while not _answers(job.url):
        time.sleep(0.01)


def _answers(url: str) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False


def _leave_unheard(job: Job, turn: object) -> None:
    """What was done was done, and the connection broke off before that was said."""
    raise DatabaseProblem("The connection broke off.")


def _connect_with(name: str = "{}", **more: Any) -> None:
    """Whichever driver it is: SQLAlchemy's own, which has it from `dbapi2`, or aiosqlite."""
    connect = sqlite3.connect

    def changed(file: str, **options: Any) -> Any:
        return connect(name.format(file), **{**options, **more})

    sqlite3.connect = sqlite3.dbapi2.connect = changed  # type: ignore[assignment]


_held: list[sqlite3.Connection] = []
STOPS: dict[str, Callable[[Job, Any], None]] = {
    "kill": _kill,
    "term": _terminate,
    "cancel": _cancel,
    "lock": _lock,
    "fill": _fill,
    "protect": _protect,
    "lose": _lose,
    "restart": _restart,
    "unheard": _leave_unheard,
}


def _file(job: Job) -> str:
    return str(make_url(job.url).database)


def _child(job: Job, out: int) -> None:
    """Runs the job, says what came of it, and ends."""
    code = 1
    try:
        time.sleep(job.after)
        came = process.take()
        os.write(out, json.dumps(asyncio.run(_carry_out(job))).encode())
        code = 0
    except KeyboardInterrupt:
        code = 128 + came[0]
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _forked(job: Job) -> tuple[int, int]:
    """The process and where it says what came of it."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.close(reader)
        _child(job, writer)
    os.close(writer)
    return child, reader


def _ended(child: int, reader: int) -> End:
    with os.fdopen(reader) as said:
        text = said.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return End(code, json.loads(text) if text else {})


def _warm() -> None:
    """Loads whatever a turn loads."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/shop.db"
        for job in (Job(url, "ask", text=BOTH), Job(url, "decide")):
            asyncio.run(_carry_out(job))
    assert threading.active_count() == 1, "what is forked has no other thread"
    gc.freeze()  # a fork's collector would copy what it only looks at


def main() -> None:
    _warm()
    for line in sys.stdin:
        jobs = [Job(**job) for job in json.loads(line)]
        began = time.monotonic()
        forks = [_forked(job) for job in jobs]
        for seconds, child in sorted(
            (j.kill, f[0]) for j, f in zip(jobs, forks, strict=True) if j.kill
        ):
            time.sleep(max(0, began + seconds - time.monotonic()))
            os.kill(child, signal.SIGKILL)
        print(json.dumps([astuple(_ended(*fork)) for fork in forks]), flush=True)


if __name__ == "__main__":
    main()
