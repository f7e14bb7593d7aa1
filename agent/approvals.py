"""The staff's side of the ledger: what waits for approval, and the decisions.

The customer goes on talking in the meantime. What is approved is carried out here, at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent import tables
from agent.ledger import Ledger
from agent.ledger_records import Outcome, Record, told
from agent.rows import Lost
from tools.tool import InvalidArguments


class NotDecidable(Exception):
    """A decision that does not count; the message says why. Nothing was done by it."""


@dataclass(frozen=True)
class Approvals:
    """Requests are named by the key of their record."""

    ledger: Ledger

    async def waiting(self) -> Sequence[Record]:
        """What nobody has decided yet, oldest first, and what was approved and broken off.

        What waited too long is ended.
        """
        c = tables.actions.c
        open_ones = (c.role != "", c.state.in_(("waiting", "claimed", "failed")))
        settled = [await self.ledger.settle(r) for r in await self.ledger.records(*open_ones)]
        still = [r for r in settled if r.state == "waiting" or _is_broken_off(r)]
        return sorted(still, key=lambda record: record.asked_at)

    async def named(self, start: str) -> list[Record]:
        """The requests, decided or not, whose keys begin so."""
        c = tables.actions.c
        begins = c.key.startswith(start.lower(), autoescape=True)
        return await self.ledger.records(c.role != "", begins)

    async def decide(
        self, key: str, *, approve: bool, by: str, role: str | None = None, reason: str = ""
    ) -> Outcome:
        """Approves a request and carries it out, or refuses it; the outcome of its call.

        by: who decides. role: theirs, as authentication says; None where whoever holds the database
        decides, as on the command line. Raises NotDecidable.
        """
        while found := await self.ledger.record(key):
            record = await self.ledger.settle(found)
            if problem := _problem(record, by, role):
                raise NotDecidable(f"{problem} Nothing was done.")
            deciding = self._approve(record, by) if approve else self._refuse(record, by, reason)
            if outcome := await deciding:
                return outcome  # else it has changed meanwhile, or what stood in its way has
        raise NotDecidable("There is no such request. Nothing was done.")

    async def _approve(self, record: Record, by: str) -> Outcome | None:
        try:
            write = self.ledger.tools.write_of(record)
        except (KeyError, InvalidArguments):
            raise NotDecidable(
                f"The shop has no tool {record.tool!r} any more that takes these arguments, so it"
                " can only be refused. Nothing was done."
            ) from None
        return await self.ledger.carry_out(write, record.generation, record, staff=by)

    async def _refuse(self, record: Record, by: str, reason: str) -> Outcome | None:
        try:
            refused = {"state": "refused", "decided_by": by, "reason": reason, "error": None}
            return told(await self.ledger.change(record, by, **refused))
        except Lost:
            return None


def _is_broken_off(record: Record) -> bool:
    """Whether it was approved, and whoever carried it out was stopped before anything was done."""
    return record.never_began and bool(record.decided_by)


def _problem(record: Record, by: str, role: str | None) -> str:
    """Why this person cannot decide this request now; "" where they can."""
    if record.state == "expired":
        return "The request has lapsed: nobody decided it in time."
    if not record.customer_id:
        return "What was kept of the request was erased."
    if record.is_claimed and record.decided_by:
        return f"{record.decided_by} has approved it, and it is being carried out. Look again soon."
    if record.state != "waiting" and not _is_broken_off(record):
        decided = f"decided by {record.decided_by}" if record.decided_by else "never to be decided"
        return f"The request was {decided} already; it is {record.state}."
    if not by or by.strip().casefold() == record.customer_id.casefold():
        return "A request is decided by a member of staff, never by its customer."
    if role is not None and role != record.role:
        return f"Only staff with the role {record.role!r} may decide this request."
    return ""
