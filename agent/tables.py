"""The agent's tables, as the newest migration leaves them."""

from functools import cache
from typing import Any

import sqlalchemy
from sqlalchemy import JSON, Boolean, Column, Dialect, Integer, MetaData, Table, TypeDecorator
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

metadata = MetaData()
NUL, ITS_STAND_IN = "\0", "\U0010ffff"


class _AnyText(TypeDecorator[str]):
    """PostgreSQL takes no NUL: a character that Unicode keeps for nobody stands in for it."""

    impl = sqlalchemy.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return value and value.replace(NUL, ITS_STAND_IN)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return value and value.replace(ITS_STAND_IN, NUL)


Text = sqlalchemy.Text().with_variant(_AnyText(), "postgresql")


@cache
def inserting(dialect: str, table: Table, *, replace: bool) -> Any:
    """An insert of rows, made once: those that are there stay, or are replaced.

    dialect: by its name; both spell it alike.
    """
    insert = (sqlite_insert if dialect == "sqlite" else postgresql_insert)(table)
    key = [column.name for column in table.primary_key]
    others = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in key}
    if replace:
        return insert.on_conflict_do_update(index_elements=key, set_=others)
    return insert.on_conflict_do_nothing()


threads = Table(
    "threads",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("customer_id", Text, nullable=False),
    Column("begun_at", Text, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("question_id", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("answer", JSON, nullable=True),
    Column("begun_at", Text, nullable=False),
    Column("ended_at", Text, nullable=True),
    # The responses of the model as `agent.usage.Spent`; what they and the calls cost in US dollars,
    # null where it is not known; the root run of its trace.
    Column("spent", JSON(none_as_null=True), nullable=True),
    Column("cost_usd", Text, nullable=True),
    Column("trace_id", Text, nullable=True),
)

# One row a call: what the model asked for and what became of it.
calls = Table(
    "calls",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("call_id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("subject", Text, nullable=False),
    Column("call", JSON, nullable=False),
    Column("result", JSON, nullable=False),
)

# One row a turn that is going on; an older run of the thread finds a token that is not its own.
fences = Table(
    "fences",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("token", Text, nullable=False),
)

# One row each time that an action is, or was to be, carried out: `agent/actions.py`.
actions = Table(
    "actions",
    metadata,
    Column("key", Text, primary_key=True),
    Column("action", Text, nullable=False, index=True),
    Column("generation", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("customer_id", Text, nullable=False, index=True),
    Column("thread_id", Text, nullable=False, index=True),
    Column("call", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("outside", Boolean, nullable=False),
    Column("state", Text, nullable=False, index=True),
    Column("holder", Text, nullable=False),
    Column("until", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("decided_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("receipt", JSON(none_as_null=True), nullable=True),
    Column("error", JSON(none_as_null=True), nullable=True),
    Column("asked_at", Text, nullable=False),
    Column("changed_at", Text, nullable=False),
)

# Who did what, when; rows are only added. `by` is a customer, a member of staff, or "" for nobody.
# Of somebody whose data were erased (`agent/erasing.py`), `by` is this, customer and thread are "".
ERASED = "(erased)"
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False),
    Column("thread_id", Text, nullable=False, index=True),
    Column("customer_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("subject", Text, nullable=False, index=True),
    Column("key", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("by", Text, nullable=False),
)

# Conversations that wait for a person, or did; also what is to be delivered to the help desk.
tickets = Table(
    "tickets",
    metadata,
    Column("ticket", Text, primary_key=True),
    Column("thread_id", Text, nullable=False, index=True),
    Column("customer_id", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("opened_at", Text, nullable=False),
    Column("delivered_at", Text, nullable=True),
    Column("closed_at", Text, nullable=True),
    Column("closed_by", Text, nullable=False, server_default=""),
    Column("note", Text, nullable=False, server_default=""),
)
