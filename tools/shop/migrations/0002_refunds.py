"""Refunds, one row each under the idempotency key of its action."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MONEY = sa.Numeric().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "refunds",
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("amount", MONEY, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
    )
    op.create_index("ix_refunds_order_id", "refunds", ["order_id"])
