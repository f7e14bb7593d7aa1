"""What a turn used and cost, and which trace tells of it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ADDED = {"spent": sa.JSON, "cost_usd": sa.Text, "trace_id": sa.Text}


def upgrade() -> None:
    for name, kind in ADDED.items():
        op.add_column("turns", sa.Column(name, kind(), nullable=True))


def downgrade() -> None:
    for name in ADDED:
        op.drop_column("turns", name)
