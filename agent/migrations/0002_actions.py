"""Actions with their audit trail, the fences of threads, and tickets for people."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "fences",
        sa.Column("thread_id", sa.Text(), primary_key=True),
        sa.Column("token", sa.Text(), nullable=False),
    )
    op.create_table(
        "actions",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("customer_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("outside", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("until", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("receipt", sa.JSON(), nullable=True),
        sa.Column("error", sa.JSON(), nullable=True),
        sa.Column("asked_at", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Text(), nullable=False),
    )
    op.create_index("ix_actions_action", "actions", ["action"])
    op.create_index("ix_actions_customer_id", "actions", ["customer_id"])
    op.create_index("ix_actions_thread_id", "actions", ["thread_id"])
    op.create_index("ix_actions_state", "actions", ["state"])
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("customer_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
    )
    op.create_index("ix_audit_thread_id", "audit", ["thread_id"])
    op.create_index("ix_audit_subject", "audit", ["subject"])
    op.create_table(
        "tickets",
        sa.Column("ticket", sa.Text(), primary_key=True),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("customer_id", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.Text(), nullable=False),
        sa.Column("delivered_at", sa.Text(), nullable=True),
        sa.Column("closed_at", sa.Text(), nullable=True),
    )
    op.create_index("ix_tickets_thread_id", "tickets", ["thread_id"])


def downgrade() -> None:
    for table in ("tickets", "audit", "actions", "fences"):
        op.drop_table(table)
