"""Carries out writes, each action once, whatever crashes, races or repeats (promise P5).

    outcome = await ledger.look_up(write)       # before the customer is asked: is it done already?
    problem = await ledger.check(write)         # and would it be refused?
    outcome = await ledger.write_once(write)    # does it, hands it to staff, or says why not

An effect in our own database and *done* commit in one transaction, so a claim that lapsed without
*done* never happened. An outside service is asked for the key before anything is tried again.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from langgraph.errors import GraphInterrupt
from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from agent import rows, tables
from agent.calls import ErrorKind, ToolError
from agent.ledger_records import Outcome, Record, Write, failed, first_record, now, told
from agent.rows import Lost, Stale
from agent.write_tools import WriteTools, problem_of
from tools.database import Database, DatabaseProblem
from tools.failures import NotDone, NotFound, Refused
from tools.policy.action_rules import ActionRule, Approval

log = logging.getLogger(__name__)

POLL = 0.05  # seconds between looks at a claim that somebody else holds
CERTAIN = (Refused, NotFound, NotDone)  # failures of a write that prove that nothing was done
NOT_DONE = ("failed", "refused", "expired")

STALE = "The conversation has gone on since, so this was not done."
NOT_BEGUN = "It was broken off before anything was changed."
NOT_RECEIVED = "The service never received it. Nothing was done."
BLOCKED = "It is not known yet what became of an earlier request about this. Nothing more was done."
UNKNOWN = "The record of changes cannot be reached, so it is not known whether it was done."
UNRECORDED = "The record of changes cannot be reached. Nothing was done."


class Blocked(Exception):
    """Of these records, `args`, about the same subject it is not known what became."""


@dataclass(frozen=True)
class Ledger:
    """`rules` are those of `tools/policy/actions.toml`, for each write tool among `tools`.

    lease: seconds that a claim outlives the work that it is for, and that an outside service is
    given to receive what was sent to it.
    """

    database: Database
    tools: WriteTools
    rules: Mapping[str, ActionRule]
    lease: float = 5

    async def begin_turn(self, thread: str, token: str) -> None:
        """From now on, only writes that carry this token are begun in the thread."""
        await self.database.write(lambda db: rows.put_fence(db, thread, token))

    async def look_up(self, write: Write) -> Outcome | None:
        """What is known of this action already; None where it would be carried out now."""
        found = await self._next(write)
        return found if isinstance(found, Outcome) else None

    async def check(self, write: Write) -> ToolError | None:
        """Why the action would be refused as things are, so that nobody confirms the impossible."""
        return await self.tools.problem(write)

    async def write_once(self, write: Write) -> Outcome:
        """Carries the action out, unless that was done before; then its receipt is the outcome.

        Where staff has to approve it, the request is recorded, and the outcome says so. Whoever
        asks while another process is at it gets what that one gets.
        """
        try:
            while True:
                step = await self._next(write)
                if isinstance(step, Outcome):
                    return await self.tell_again(write, step)
                if step is None:
                    await asyncio.sleep(POLL)
                elif outcome := await self.carry_out(write, *step):
                    return outcome
        except DatabaseProblem:
            return failed("service_error", UNRECORDED)

    async def carry_out(
        self, write: Write, generation: int, before: Record | None, staff: str = ""
    ) -> Outcome | None:
        """Claims this generation and carries it out; None where somebody else was faster.

        staff: who approves it; without, one that needs an approval is left waiting for it.
        """
        try:
            record = await self._claim(write, generation, before, staff)
        except Lost:
            return None
        except Stale:
            return failed("not_executed", STALE)
        except Blocked as blocked:
            settled = [await self.settle(each) for each in blocked.args]
            return failed("refused", BLOCKED) if any(r.is_open for r in settled) else None
        try:
            return told(await self._execute(write, record) if record.is_claimed else record)
        except Lost:
            return None
        except DatabaseProblem:
            return failed("unknown_outcome", UNKNOWN)

    async def settle(self, record: Record) -> Record:
        """The record as it is now: what lapsed is ended, what a service owes is looked up."""
        news: dict[str, Any] | None = None
        if not record.customer_id:  # erased: nobody is left for whom to look it up
            return record
        if record.state == "waiting" and record.is_over:
            news = {"state": "expired"}
        elif self.tools.awaits(record) or (record.outside and record.is_open):
            news = await self._news(record)
        elif record.is_open:
            news = _failure("not_executed", NOT_BEGUN)
        if not news:
            return record
        with suppress(Lost):
            return await self.change(record, **news)
        return await self.record(record.key) or record

    async def of_call(self, thread: str, call: str) -> Record | None:
        """What the ledger has of a call, for a turn that was broken off."""
        c = tables.actions.c
        found = await self.records(c.thread_id == thread, c.call == call)
        return await self.settle(found[-1]) if found else None

    async def record(self, key: str) -> Record | None:
        found = await self.records(tables.actions.c.key == key)
        return found[0] if found else None

    async def records(self, *where: ColumnElement[bool]) -> list[Record]:
        async with self.database.connect() as db:
            return await rows.read(db, *where)

    async def change(self, record: Record, by: str = "", **changed: Any) -> Record:
        """Changes a record, with its line in the audit trail. Raises Lost."""
        async with self.database.begin() as db:
            return await rows.move(db, record, by, **changed)

    async def tell_again(self, write: Write, known: Outcome) -> Outcome:
        """A receipt for what is not done now: it was asked for before, or the call runs again."""
        if known.data:
            with suppress(DatabaseProblem):  # it is as true without its line
                await self.note(write, "told_again", write.customer, known.key)
        return known

    async def note(self, write: Write, event: str, by: str, key: str = "") -> None:
        """A line in the audit trail for what changes no record: rejected, withdrawn, told again."""
        about = {"thread_id": write.thread, "customer_id": write.customer, "key": key}
        async with self.database.begin() as db:
            await rows.note(db, event, by, tool=write.tool.name, subject=write.subject, **about)

    async def events(self, *where: ColumnElement[bool]) -> Sequence[dict[str, Any]]:
        """The audit trail, oldest first."""
        query = select(tables.audit).where(*where).order_by(tables.audit.c.id)
        async with self.database.connect() as db:
            return [dict(row) for row in (await db.execute(query)).mappings()]

    async def _next(self, write: Write) -> Outcome | tuple[int, Record | None] | None:
        """The outcome; or which generation to carry out, with its record; None to wait."""
        every = await self.records(tables.actions.c.action == write.action)
        found = _meant(write, every)
        if found is None:
            return len(every), None
        record = await self.settle(found)
        if record.is_claimed:
            return None
        if record.never_began:
            return record.generation, record
        if record.is_of(write):
            return told(record)
        try:
            over = record.state == "done" and not await self.tools.stands(write, record)
        except Exception as error:
            return Outcome(error=problem_of(write.tool, error))
        if over or record.state in NOT_DONE:
            return record.generation + 1, None
        return told(record, repeated=True)

    async def _claim(
        self, write: Write, generation: int, before: Record | None, staff: str
    ) -> Record:
        """The record, claimed or waiting for staff. Raises Lost, Stale and Blocked."""
        outside = self.tools.is_outside(write)
        record = before or first_record(write, generation, outside)
        work = 2 * self.tools.seconds(write.tool) if outside else 0  # the call, and looking it up
        changed: dict[str, Any] = {
            "state": "claimed",
            "holder": uuid4().hex,
            "until": self._until(work),
            "decided_by": staff or record.decided_by,
            "error": None,
            "customer_id": write.customer,  # it may have been erased
            "outside": outside,  # and the shop may have moved since it was asked for
            "thread_id": write.thread,
            "call": write.call,
            "arguments": write.plain,
        }
        async with self.database.begin() as db:
            others = await self._others(db, write, record.key)
            if not changed["decided_by"] and (approval := self._approval(write, others)):
                changed |= {"state": "waiting", "role": approval.role, "until": now(approval.waits)}
            if write.confirmed:
                await rows.note_of(db, record, "confirmed", write.customer)
            by = staff or write.customer
            if before is not None:
                return await rows.move(db, before, by, **changed)
            return await rows.add(db, replace(record, **changed), by)

    async def _others(self, db: AsyncConnection, write: Write, key: str) -> Sequence[Record]:
        """The other records about the subject. Raises Stale and Blocked."""
        await rows.one_at_a_time(db, f"{write.customer}/{write.subject}")
        await rows.check_fence(db, write.thread, write.fence)
        c = tables.actions.c
        whose = c.customer_id.in_((write.customer, ""))  # the latter where that was erased
        about = (whose, c.subject == write.subject, c.key != key)
        others = await rows.read(db, *about) if write.subject else []
        if unknown := [each for each in others if each.outside and each.is_open]:
            raise Blocked(*unknown)
        return others

    def _approval(self, write: Write, others: Sequence[Record]) -> Approval | None:
        """The approval that is needed; what the same tool paid for the subject before counts."""
        arguments = dict(write.arguments)
        if "amount" in arguments:
            paid = [r for r in others if r.tool == write.tool.name and r.state not in NOT_DONE]
            sums = [Decimal(record.arguments["amount"]) for record in paid]
            arguments["amount"] = sum(sums, Decimal(str(arguments["amount"])))
        return self.rules[write.tool.name].approval(arguments)

    async def _execute(self, write: Write, record: Record) -> Record:
        """Carries out what is claimed; what came of it is recorded. Raises Lost."""
        try:
            return await self._run(write, record)
        except Lost:
            raise
        except Stale:
            return await self.change(record, **_failure("not_executed", STALE))
        except CERTAIN as failure:
            return await self.change(record, **_failure(failure.kind, failure.message))
        except (GraphInterrupt, asyncio.CancelledError):
            await asyncio.shield(self._let_go(record))
            raise
        except Exception as error:
            problem = problem_of(write.tool, error)
            news = await self._news(record) or self._unknown() if record.outside else None
            return await self.change(record, **(news or _failure(**problem)))

    async def _run(self, write: Write, record: Record) -> Record:
        """The effect and its receipt: in one transaction, or one after the other where outside."""
        if record.outside:
            receipt = await self.tools.receipt(write, record.key)
            return await self.change(record, state=receipt["state"], receipt=receipt)
        async with self.database.begin() as db:
            await rows.check_fence(db, write.thread, write.fence)
            receipt = await self.tools.receipt(write, record.key, db)
            return await rows.move(db, record, state=receipt["state"], receipt=receipt)

    async def _news(self, record: Record) -> dict[str, Any] | None:
        """What the service says of the key, as a change of the record; None where it is none."""
        not_known = self._unknown() if record.is_claimed else None
        try:
            receipt = await self.tools.find(record)
        except Refused as failure:
            return _failure(failure.kind, failure.message)
        except Exception as error:
            log.warning("tool %s cannot look up: %s", record.tool, type(error).__name__)
            return not_known
        if receipt is not None:
            told_now = {"state": receipt.state, "receipt": receipt.model_dump(mode="json")}
            return told_now if any(record.values[k] != v for k, v in told_now.items()) else None
        if record.is_open and record.is_over:
            return _failure("not_executed", NOT_RECEIVED)
        return not_known

    async def _let_go(self, record: Record) -> None:
        """Nobody is at it any more, so nobody need wait for the claim to lapse."""
        with suppress(Lost, DatabaseProblem):
            ends = self._unknown() if record.outside else _failure("not_executed", NOT_BEGUN)
            await self.change(record, **ends)

    def _unknown(self) -> dict[str, Any]:
        return {"state": "unknown", "until": self._until()}

    def _until(self, work: float = 0) -> str:
        return now(timedelta(seconds=work + self.lease))


def _meant(write: Write, every: Sequence[Record]) -> Record | None:
    """The record that a call speaks of: its own, or the newest that is not what it repeats."""
    own = [record for record in every if record.is_of(write)]
    newest = own or [record for record in every[-1:] if record.key != write.again]
    return newest[-1] if newest else None


def _failure(kind: ErrorKind, message: str) -> dict[str, Any]:
    """A change of a record that says that nothing was done."""
    return {"state": "failed", "error": ToolError(kind=kind, message=message), "receipt": None}
