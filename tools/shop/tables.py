"""The shop's tables, as the newest migration leaves them."""

from decimal import Decimal
from typing import Any

from sqlalchemy import (
    Column,
    Date,
    Dialect,
    ForeignKey,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.types import TypeEngine

metadata = MetaData()


class Money(TypeDecorator[Decimal]):
    """An exact amount with the decimals it came with; text on SQLite, whose NUMERIC is a float."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else Numeric())

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return format(value, "f") if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


def _column(name: str, kind: type[TypeEngine[Any]] = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _order_id() -> Column[Any]:
    order = ForeignKey("orders.order_id", ondelete="CASCADE")
    return Column("order_id", Text, order, primary_key=True)


customers = Table(
    "customers",
    metadata,
    Column("customer_id", Text, primary_key=True),
    _column("name"),
    _column("email"),
    _column("locale"),
)

orders = Table(
    "orders",
    metadata,
    Column("order_id", Text, primary_key=True),
    Column("customer_id", Text, ForeignKey("customers.customer_id"), nullable=False, index=True),
    _column("status"),
    _column("placed_on", Date),
    _column("total", Money),
    _column("currency"),
    _column("note"),
    _column("address"),
)

order_items = Table(
    "order_items",
    metadata,
    _order_id(),
    Column("position", Integer, primary_key=True, autoincrement=False),
    _column("sku"),
    _column("name"),
    _column("quantity", Integer),
    _column("price", Money),
)

parcels = Table(
    "parcels",
    metadata,
    _order_id(),
    Column("parcel_id", Text, primary_key=True),
    _column("position", Integer),
    _column("carrier"),
    _column("tracking_number"),
    _column("promised_date", Date),
    _column("days", Integer),
)

# Without a foreign key: an order that is imported again replaces the old one, not its refunds.
refunds = Table(
    "refunds",
    metadata,
    Column("key", Text, primary_key=True),
    Column("order_id", Text, nullable=False, index=True),
    _column("amount", Money),
    _column("currency"),
    _column("reason"),
    _column("at"),
)
