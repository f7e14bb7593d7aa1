"""The staff's side of the ledger: what waits for approval, and the decisions.

The customer goes on talking in the meantime. What is approved is carried out here, at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent import tables
from agent.actions import Outcome, Record, told
from agent.ledger import Ledger
from agent.rows import Lost


class NotDecidable(Exception):
    """A decision that does not count; the message says why. Nothing was done by it."""


@dataclass(frozen=True)
class Approvals:
    """Requests are named by the key of their record."""

    ledger: Ledger

    async def waiting(self) -> Sequence[Record]:
        """What nobody has decided yet, oldest first; what waited too long is ended."""
        waiting = await self.ledger.records(tables.actions.c.state == "waiting")
        settled = [await self.ledger.settle(record) for record in waiting]
        still = [record for record in settled if record.state == "waiting"]
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
        found = await self.ledger.record(key)
        record = await self.ledger.settle(found) if found else None
        if record is None:
            raise NotDecidable("There is no such request. Nothing was done.")
        if problem := _problem(record, by, role, approve):
            raise NotDecidable(f"{problem} Nothing was done.")
        outcome = await (self._approve(record, by) if approve else self._refuse(record, by, reason))
        if outcome is None:
            raise NotDecidable("Somebody else has just decided it. Nothing was done by this.")
        return outcome

    async def _approve(self, record: Record, by: str) -> Outcome | None:
        write = self.ledger.tools.write_of(record)
        return await self.ledger.carry_out(write, record.generation, record, staff=by)

    async def _refuse(self, record: Record, by: str, reason: str) -> Outcome | None:
        try:
            refused = {"state": "refused", "decided_by": by, "reason": reason}
            return told(await self.ledger.change(record, by, **refused))
        except Lost:
            return None


def _problem(record: Record, by: str, role: str | None, approve: bool) -> str:
    """Why this person cannot decide this request now; "" where they can."""
    broken_off = record.never_began and bool(record.decided_by) and approve
    if record.state == "expired":
        return "The request has lapsed: nobody decided it in time."
    if not record.customer_id:
        return "What was kept of the request was erased."
    if record.state != "waiting" and not broken_off:
        decided = f"decided by {record.decided_by}" if record.decided_by else "never to be decided"
        return f"The request was {decided} already; it is {record.state}."
    if not by or by == record.customer_id:
        return "A request is decided by a member of staff, never by its customer."
    if role is not None and role != record.role:
        return f"Only staff with the role {record.role!r} may decide this request."
    return ""
