"""Threads, their turns, and the calls of each turn."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "threads",
        sa.Column("thread_id", sa.Text(), primary_key=True),
        sa.Column("customer_id", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.Text(), nullable=False),
    )
    op.create_table(
        "turns",
        sa.Column("thread_id", sa.Text(), primary_key=True),
        sa.Column("turn", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("begun_at", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
    )
    op.create_table(
        "calls",
        sa.Column("thread_id", sa.Text(), primary_key=True),
        sa.Column("turn", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("round", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("call_id", sa.Text(), primary_key=True),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("call", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
    )
