"""The shop's tables, as the newest migration leaves them."""

from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

metadata = sa.MetaData()


class Money(sa.TypeDecorator[Decimal]):
    """An exact amount with the decimals it came with; text on SQLite, whose NUMERIC is a float."""

    impl = sa.Numeric().with_variant(sa.Text(), "sqlite")
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: sa.Dialect) -> Any:
        return format(value, "f") if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


def _column(name: str, kind: type[TypeEngine[Any]] = sa.Text) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _key(name: str, *of: sa.ForeignKey) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, *of, primary_key=True)


def _order_id() -> sa.Column[Any]:
    return _key("order_id", sa.ForeignKey("orders.order_id", ondelete="CASCADE"))


customers = sa.Table(
    "customers",
    metadata,
    _key("customer_id"),
    _column("name"),
    _column("email"),
    _column("locale"),
)

_customer = sa.ForeignKey("customers.customer_id")
orders = sa.Table(
    "orders",
    metadata,
    _key("order_id"),
    sa.Column("customer_id", sa.Text, _customer, nullable=False, index=True),
    _column("status"),
    _column("placed_on", sa.Date),
    _column("total", Money),
    _column("currency"),
    _column("note"),
    _column("address"),
)

order_items = sa.Table(
    "order_items",
    metadata,
    _order_id(),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    _column("sku"),
    _column("name"),
    _column("quantity", sa.Integer),
    _column("price", Money),
)

parcels = sa.Table(
    "parcels",
    metadata,
    _order_id(),
    _key("parcel_id"),
    _column("position", sa.Integer),
    _column("carrier"),
    _column("tracking_number"),
    _column("promised_date", sa.Date),
    _column("days", sa.Integer),
)

# Without a foreign key: an order that is imported again replaces the old one, not its refunds.
refunds = sa.Table(
    "refunds",
    metadata,
    _key("key"),
    sa.Column("order_id", sa.Text, nullable=False, index=True),
    _column("amount", Money),
    _column("currency"),
    _column("reason"),
    _column("at"),
)
