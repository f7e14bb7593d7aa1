"""Who gave a conversation back to the agent, and what they noted."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for name in ("closed_by", "note"):
        column = sa.Column(name, sa.Text(), nullable=False, server_default="")
        op.add_column("tickets", column)
