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


def _key(name: str, kind: Any = Text) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _each(kind: Any, *names: str, **options: Any) -> list[Column[Any]]:
    """Columns of one kind that are never null."""
    return [Column(name, kind, nullable=False, **options) for name in names]


threads = Table(
    "threads",
    metadata,
    _key("thread_id"),
    *_each(Text, "customer_id", "begun_at"),
)

turns = Table(
    "turns",
    metadata,
    _key("thread_id"),
    _key("turn", Integer),
    *_each(Text, "question_id", "question", "begun_at"),
    Column("answer", JSON),
    Column("ended_at", Text),
    # The responses of the model as `agent.usage.Spent`; what they and the calls cost in US dollars,
    # null where it is not known; the root run of its trace.
    Column("spent", JSON(none_as_null=True)),
    Column("cost_usd", Text),
    Column("trace_id", Text),
)

# One row a call: what the model asked for and what became of it.
calls = Table(
    "calls",
    metadata,
    _key("thread_id"),
    _key("turn", Integer),
    _key("round", Integer),
    _key("call_id"),
    *_each(Integer, "place"),
    *_each(Text, "subject"),
    *_each(JSON, "call", "result"),
)

# One row a turn that is going on; an older run of the thread finds a token that is not its own.
fences = Table("fences", metadata, _key("thread_id"), *_each(Text, "token"))

# One row each time that an action is, or was to be, carried out: `agent/ledger_records.py`.
actions = Table(
    "actions",
    metadata,
    _key("key"),
    *_each(Integer, "generation", "version"),
    *_each(Text, "action", "customer_id", "thread_id", "state", index=True),
    *_each(Text, "call", "tool", "subject", "holder", "until", "role", "decided_by", "reason"),
    *_each(JSON, "arguments"),
    *_each(Boolean, "outside"),
    Column("receipt", JSON(none_as_null=True)),
    Column("error", JSON(none_as_null=True)),
    *_each(Text, "asked_at", "changed_at"),
)

# Who did what, when; rows are only added. `by` is a customer, a member of staff, or "" for nobody.
# Of somebody whose data were erased (`agent/erasing.py`), `by` is this, customer and thread are "".
ERASED = "(erased)"
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    *_each(Text, "at"),
    *_each(Text, "thread_id", index=True),
    *_each(Text, "customer_id", "tool"),
    *_each(Text, "subject", index=True),
    *_each(Text, "key", "event", "by"),
)

# Conversations that wait for a person, or did; also what is to be delivered to the help desk.
tickets = Table(
    "tickets",
    metadata,
    _key("ticket"),
    *_each(Text, "thread_id", index=True),
    *_each(Text, "customer_id", "summary", "opened_at"),
    Column("delivered_at", Text),
    Column("closed_at", Text),
    *_each(Text, "closed_by", "note", server_default=""),
)
