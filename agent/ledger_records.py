"""A write as the ledger knows it: which action it is, what became of it, and what is said of that.

An action is a customer, a tool and the arguments that the tool names as its identity. It is carried
out once; each time that it is carried out again on purpose is another generation of it. The
idempotency key of a generation is derived from all of that, so whoever asks comes to the same one.

    waiting → refused | expired | claimed          where a member of staff has to approve it
    claimed → done | accepted | failed | unknown
    accepted, unknown → done | failed              when the service that was asked knows more
    failed → claimed                               under the same key, where nothing was ever begun
    failed → refused                               by staff, where their approval was broken off
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal
from uuid import NAMESPACE_OID, uuid5

from pydantic_core import to_jsonable_python

from agent.calls import ErrorKind, ToolError
from tools.tool import Tool

ActionState = Literal[
    "waiting", "refused", "expired", "claimed", "done", "accepted", "failed", "unknown"
]

SENTENCES: Mapping[str, tuple[ErrorKind, str]] = {
    "waiting": ("awaiting_approval", "Our staff has to approve it first. It is not done yet."),
    "refused": ("rejected", "Our staff did not approve it, so it was not done."),
    "expired": ("not_executed", "Nobody approved it in time, so it was not done."),
    "unknown": (
        "unknown_outcome",
        "It is not known whether it was done. Nothing more is tried until that is known.",
    ),
}


@dataclass(frozen=True)
class Write:
    """One call that writes.

    arguments: as the tool's schema read them. call: which call of the thread it is, such as
    "3/1/call_0" (turn, round, call id); "" where it is none of a conversation.
    fence: the token of the turn, None where no turn is going on. again: the key of a receipt that
    the customer knows, and wants the same once more. confirmed: whether the customer said yes to
    this very call.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    customer: str
    thread: str = ""
    call: str = ""
    fence: str | None = None
    again: str = ""
    confirmed: bool = False

    @property
    def subject(self) -> str:
        return str(self.arguments[self.tool.subject]) if self.tool.subject else ""

    @property
    def call_id(self) -> str:
        return self.call.split("/", 2)[-1]

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The arguments as JSON, money as text."""
        return {name: to_jsonable_python(value) for name, value in self.arguments.items()}

    @cached_property
    def action(self) -> str:
        """Names the action: the same for the same, however its arguments are written."""
        about = {name: _canonical(self.arguments[name]) for name in self.tool.identity}
        whose = [self.customer, "" if self.tool.subject else self.thread]
        return _id(self.tool.name, about, whose)

    def key(self, generation: int) -> str:
        return _id(self.action, generation)


@dataclass(frozen=True)
class Record:
    """A row of the ledger: one generation of an action. Times are ISO 8601 in UTC.

    outside: whether its effect happens elsewhere than in our database.
    holder, until: who carries it out, and when that claim lapses; of a request that waits, when it
    does. role: who may approve it. decided_by, reason: who did, or did not, and why.
    """

    key: str
    action: str
    generation: int
    customer_id: str
    thread_id: str
    call: str
    tool: str
    subject: str
    arguments: dict[str, Any]
    outside: bool
    state: ActionState = "claimed"
    version: int = 0
    holder: str = ""
    until: str = ""
    role: str = ""
    decided_by: str = ""
    reason: str = ""
    receipt: dict[str, Any] | None = None
    error: ToolError | None = None
    asked_at: str = ""
    changed_at: str = ""

    @property
    def is_claimed(self) -> bool:
        return self.state == "claimed"

    @property
    def is_over(self) -> bool:
        return self.until < now()

    @property
    def is_open(self) -> bool:
        """Whether it is not known what became of it, with nobody at work on it."""
        return self.state == "unknown" or (self.is_claimed and self.is_over)

    @property
    def never_began(self) -> bool:
        """Whether it was claimed, and is certain not to have been tried."""
        error = self.error if self.state == "failed" else None
        return error is not None and error["kind"] == "not_executed"

    @property
    def values(self) -> dict[str, Any]:
        return asdict(self)

    def is_of(self, write: Write) -> bool:
        """Whether it was made by this very call, which may be told again after a crash."""
        return bool(write.call) and (self.thread_id, self.call) == (write.thread, write.call)


@dataclass(frozen=True)
class Outcome:
    """What a call is told: the data of a receipt, or an error. `key` names the record, if any."""

    data: dict[str, Any] | None = None
    error: ToolError | None = None
    key: str = ""
    state: ActionState | None = None


def first_record(write: Write, generation: int, outside: bool) -> Record:
    return Record(
        key=write.key(generation),
        action=write.action,
        generation=generation,
        customer_id=write.customer,
        thread_id=write.thread,
        call=write.call,
        tool=write.tool.name,
        subject=write.subject,
        arguments=write.plain,
        outside=outside,
        asked_at=now(),
        changed_at=now(),
    )


def told(record: Record, *, repeated: bool = False) -> Outcome:
    """What a call is told of a record; `repeated` where that is another call's."""
    if record.receipt is not None:
        data = {**record.receipt, "repeated": repeated}
        return Outcome(data, key=record.key, state=record.state)
    kind, message = SENTENCES.get(record.state, SENTENCES["unknown"])
    error = record.error or ToolError(kind=kind, message=message)
    return Outcome(error=error, key=record.key, state=record.state)


def failed(kind: ErrorKind, message: str) -> Outcome:
    return Outcome(error=ToolError(kind=kind, message=message))


def now(later: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) + later).isoformat(timespec="microseconds")


def _canonical(value: Any) -> Any:
    """One form for what means the same: 10, 10.0 and "10.00" of money are one amount."""
    match value:
        case bool() | None:
            return value
        case int() | float() | Decimal():
            return format(Decimal(str(value)).normalize(), "f")
        case dict():
            return {str(name): _canonical(each) for name, each in value.items()}
        case list() | tuple():
            return [_canonical(each) for each in value]
        case _:
            return to_jsonable_python(value)


def _id(*parts: Any) -> str:
    return str(uuid5(NAMESPACE_OID, json.dumps(parts, sort_keys=True)))
