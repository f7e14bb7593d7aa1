"""Actions with their audit trail, the fences of threads, and tickets for people."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "fences",
        sa.Column("thread_id", sa.Text(), primary_key=True),
        *_texts("token"),
    )
    op.create_table(
        "actions",
        sa.Column("key", sa.Text(), primary_key=True),
        *_texts("action"),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        *_texts("customer_id", "thread_id", "call", "tool", "subject"),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("outside", sa.Boolean(), nullable=False),
        *_texts("state", "holder", "until", "role", "decided_by", "reason"),
        sa.Column("receipt", sa.JSON(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        *_texts("asked_at", "changed_at"),
    )
    _index("actions", "action", "customer_id", "thread_id", "state")
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), primary_key=True),
        *_texts("at", "thread_id", "customer_id", "tool", "subject", "key", "event", "by"),
    )
    _index("audit", "thread_id", "subject")
    op.create_table(
        "tickets",
        sa.Column("ticket", sa.Text(), primary_key=True),
        *_texts("thread_id", "customer_id", "summary", "opened_at"),
        sa.Column("delivered_at", sa.Text(), nullable=True),
        sa.Column("closed_at", sa.Text(), nullable=True),
    )
    _index("tickets", "thread_id")


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _index(table: str, *columns: str) -> None:
    for column in columns:
        op.create_index(f"ix_{table}_{column}", table, [column])
