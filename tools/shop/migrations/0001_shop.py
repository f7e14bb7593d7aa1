"""Customers, orders with their items, parcels."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# SQLite keeps money as text: its own NUMERIC is a float.
MONEY = sa.Numeric().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "customers",
        sa.Column("customer_id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("locale", sa.Text(), nullable=False),
    )
    op.create_table(
        "orders",
        sa.Column("order_id", sa.Text(), primary_key=True),
        sa.Column("customer_id", sa.Text(), sa.ForeignKey("customers.customer_id"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("placed_on", sa.Date(), nullable=False),
        sa.Column("total", MONEY, nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
    )
    op.create_index("ix_orders_customer_id", "orders", ["customer_id"])
    op.create_table(
        "order_items",
        _order_id(),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("sku", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("price", MONEY, nullable=False),
    )
    op.create_table(
        "parcels",
        _order_id(),
        sa.Column("parcel_id", sa.Text(), primary_key=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("carrier", sa.Text(), nullable=False),
        sa.Column("tracking_number", sa.Text(), nullable=False),
        sa.Column("promised_date", sa.Date(), nullable=False),
        sa.Column("days", sa.Integer(), nullable=False),
    )


def _order_id() -> sa.Column[str]:
    order = sa.ForeignKey("orders.order_id", ondelete="CASCADE")
    return sa.Column("order_id", sa.Text(), order, primary_key=True)
