"""The agent's tables, as the newest migration leaves them."""

from sqlalchemy import JSON, Column, Integer, MetaData, Table, Text

metadata = MetaData()

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
