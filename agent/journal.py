"""What happened in each thread: whose it is, what was asked, every call and its result.

The graph's state holds one turn; this table outlives it. A round's calls are written together in
one transaction, keyed by thread, turn, round and call id, since ids alone repeat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from sqlalchemy import BindParameter, ColumnElement, Connection, bindparam, func, select, update
from typing_extensions import TypedDict

from agent import tables
from agent.calls import ToolCall, ToolResult, key_of
from agent.ledger_records import now
from agent.rows import put_fence
from agent.state import Results
from agent.usage import Spent
from tools.database import Database

# What each turn runs is made once: SQLAlchemy takes longer to put a statement together than SQLite
# to run it.
_THREAD: BindParameter[str] = bindparam("this_thread")
_T = tables.turns.c
_IN_THREAD = select(func.max(_T.turn)).where(_T.thread_id == _THREAD)
_AGAIN = _IN_THREAD.where(_T.question_id == bindparam("this_question"), _T.ended_at.is_(None))
_OWNER = select(tables.threads.c.customer_id).where(tables.threads.c.thread_id == _THREAD)
_BEGUN = select(*(query.scalar_subquery() for query in (_OWNER, _AGAIN, _IN_THREAD)))
_COSTS = update(tables.turns).where(_T.thread_id == _THREAD, _T.turn == bindparam("this_turn"))
_ENDS = _COSTS.where(_T.ended_at.is_(None))


class NoSuchThread(Exception):
    """The thread is somebody else's, or nobody began it: the two are not told apart."""


@dataclass(frozen=True)
class Asked:
    """A question: the id of its message, and what it says."""

    id: str
    text: str


class Kept(NamedTuple):
    """A call as the journal has it. question_id: of the message that it was made for."""

    call: ToolCall
    result: ToolResult
    question_id: str


class Account(TypedDict, total=False):
    """What a turn used and cost, and the root run of its last trace, as `turns` names it."""

    spent: list[Spent]
    cost_usd: str | None
    trace_id: str


@dataclass(frozen=True)
class Journal:
    """The journal of all threads. Without a database nothing is kept."""

    database: Database | None

    def of(self, config: RunnableConfig) -> "ThreadJournal | UnkeptThread":
        """The part of the run's thread; a run without a thread leaves nothing behind."""
        thread = config.get("configurable", {}).get("thread_id")
        if self.database is None or not thread:
            return UnkeptThread()
        return ThreadJournal(self.database, str(thread))


class UnkeptThread:
    """Stands for a thread of which nothing is kept."""

    async def begin_turn(self, customer: str, asked: Asked, turn: int, fence: str) -> int:
        return turn

    async def _forget(self, *told: object) -> None: ...

    end_turn = note = keep = rewrite = _forget

    async def call(self, turn: int, key: str) -> Kept | None:
        return None

    async def results(self, turn: int, of: Sequence[object]) -> Results:
        return {}

    earlier = results

    async def named(self, turn: int) -> list[str]:
        return []


@dataclass(frozen=True)
class ThreadJournal:
    """One thread's journal. A customer is "" where nobody is signed in."""

    database: Database
    thread: str

    async def begin_turn(self, customer: str, asked: Asked, turn: int, fence: str) -> int:
        """Notes a turn with its token; its number, from 1 in the thread, never used again.

        A step that runs again after a crash gets the number that its question has. A question
        told again from an old checkpoint, after its turn had ended, is a new turn. The first turn
        makes the thread its customer's. `turn`, the state's own count, is not used: a state may be
        lost or told again. Raises NoSuchThread.
        """
        begun_at, thread = now(), self.thread

        def begin(db: Connection) -> int:
            begun = {"thread_id": thread, "customer_id": customer, "begun_at": begun_at}
            _write(db, tables.threads, [begun], replace=False)
            here = {"this_thread": thread, "this_question": asked.id}
            owner, again, newest = db.execute(_BEGUN, here).one()
            if owner != customer:
                raise NoSuchThread
            put_fence(db, thread, fence)
            number = again or 1 + (newest or 0)
            asking = {"question_id": asked.id, "question": asked.text, "begun_at": begun_at}
            row = {"thread_id": thread, "turn": number, **asking}
            _write(db, tables.turns, [] if again else [row], replace=False)
            return int(number)

        return await self.database.write(begin)

    async def end_turn(
        self, turn: int, answer: Mapping[str, Any], account: Account | None = None
    ) -> None:
        """What was answered first stays: a client of a server may tell a step to run again."""
        told = {"answer": dict(answer), "ended_at": now(), **(account or {})}
        ended = {**self._turn(turn), **told}
        await self.database.write(lambda db: db.execute(_ENDS, ended))

    async def note(self, turn: int, account: Account) -> None:
        """What a turn has cost that may never end."""
        noted = {**self._turn(turn), **account}
        await self.database.write(lambda db: db.execute(_COSTS, noted))

    async def keep(self, turn: int, calls: Sequence[ToolCall], results: Results) -> None:
        """Keeps a round's results; a step that runs again leaves what it told last."""
        rows = [
            {
                "thread_id": self.thread,
                "turn": turn,
                "round": call["round"],
                "call_id": call["call_id"],
                "place": place,
                "subject": results[key_of(call)]["subject"],
                "call": dict(call),
                "result": dict(results[key_of(call)]),
            }
            for place, call in enumerate(calls)
        ]
        await self.database.write(lambda db: _write(db, tables.calls, rows, replace=True))

    async def results(self, turn: int, calls: Sequence[ToolCall]) -> Results:
        """What is kept of these calls of one turn, by `round/call_id`; the very same calls only."""
        c = tables.calls.c
        query = select(c.call, c.result).where(c.thread_id == self.thread, c.turn == turn)
        async with self.database.connect() as db:
            kept = (await db.execute(query)).all()
        return {key_of(call): result for call, result in kept if call in calls}

    async def earlier(self, turn: int, ids: Sequence[str]) -> dict[str, ToolResult]:
        """The newest result of each call id in the turns before this one, where it was ok."""
        c = tables.calls.c
        query = (
            select(c.call_id, c.result)
            .where(c.thread_id == self.thread, c.turn < turn, c.call_id.in_(ids))
            .order_by(c.turn, c.round)
        )
        async with self.database.connect() as db:
            newest: dict[str, ToolResult] = dict(iter(await db.execute(query)))
        return {call_id: result for call_id, result in newest.items() if result["status"] == "ok"}

    async def told_again(self, turn: int, action: str) -> bool:
        """Whether the customer was told before this turn that an action was done already."""
        c = tables.calls.c
        query = select(c.result).where(c.thread_id == self.thread, c.turn < turn)
        async with self.database.connect() as db:
            told = [result for result in await db.scalars(query) if result.get("action") == action]
        return any(result["status"] == "ok" and result["data"]["repeated"] for result in told)

    async def call(self, turn: int, key: str) -> Kept | None:
        """A call by its `round/call_id`, with its result and the id of the question it was for."""
        c = tables.calls.c
        asked = (tables.turns.c.thread_id == c.thread_id) & (tables.turns.c.turn == c.turn)
        query = select(c.call, c.result, tables.turns.c.question_id).join(tables.turns, asked)
        async with self.database.connect() as db:
            row = (await db.execute(query.where(self._this(turn, key)))).one_or_none()
        return Kept(*row) if row else None

    async def rewrite(self, turn: int, key: str, result: ToolResult) -> None:
        """What became of a write since."""
        changed = update(tables.calls).where(self._this(turn, key)).values(result=dict(result))
        await self.database.write(lambda db: db.execute(changed))

    def _turn(self, turn: int) -> dict[str, Any]:
        return {"this_thread": self.thread, "this_turn": turn}

    def _this(self, turn: int, key: str) -> ColumnElement[bool]:
        c, (round, call_id) = tables.calls.c, key.split("/", 1)
        here = (c.thread_id == self.thread) & (c.turn == turn)
        return here & (c.round == int(round)) & (c.call_id == call_id)

    async def named(self, turn: int) -> list[str]:
        """The subjects that the thread has spoken of before this turn."""
        c = tables.calls.c
        query = select(c.subject).distinct().where(c.thread_id == self.thread, c.turn < turn)
        async with self.database.connect() as db:
            return [subject for subject in (await db.scalars(query)) if subject]

    async def owner(self) -> str | None:
        """The customer who began the thread; None when nobody did."""
        async with self.database.connect() as db:
            owner: str | None = await db.scalar(_OWNER, {"this_thread": self.thread})
            return owner


def _write(db: Connection, table: Any, rows: Sequence[dict[str, Any]], *, replace: bool) -> None:
    """Inserts rows; those that are there stay, or are replaced."""
    if rows:
        db.execute(tables.inserting(db.dialect.name, table, replace=replace), rows)
