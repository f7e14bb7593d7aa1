"""What a turn used and cost, and which trace tells of it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for name, kind in {"spent": sa.JSON, "cost_usd": sa.Text, "trace_id": sa.Text}.items():
        op.add_column("turns", sa.Column(name, kind(), nullable=True))
