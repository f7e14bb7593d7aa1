"""`orders`: the operator's side of the shop. Imports neither the graph nor a model's client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent.cli import process
from agent.cli.staff import async_command, refuse, show, tell
from agent.problems import Problem

if TYPE_CHECKING:
    from tools.database import Database
    from tools.shop.models import Order

BAD_ROW = (ValueError, ArithmeticError)
SHOWN = ("order_id", "customer_id", "status", "placed_on", "total", "currency")


@click.group()
def orders() -> None:
    """Load a shop's orders, and look at everybody's."""


@orders.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--empty", is_flag=True, help="Begin a new database, without the demo's shop.")
@async_command
async def import_(file: Path, empty: bool) -> int:
    """Load orders from a JSON or CSV file, all or none; they replace those of the same id."""
    from tools.shop.importer import ImportProblem, NotEmpty, import_shop, read_shop_file

    async with _database() as database:
        try:
            shop_file = await asyncio.to_thread(read_shop_file, file)
            done = await import_shop(database, shop_file, empty=empty)
        except NotEmpty as problem:
            way_out = "Name a new database in SUPPORT_DATABASE_URL, or leave out --empty."
            return refuse(f"{problem}\n{way_out}")
        except ImportProblem as problem:
            raise Problem(str(problem)) from None
    tell(
        f"Loaded {_counted(done.orders, 'order')} ({done.replaced} of them replaced),"
        f" {_counted(done.items, 'item')}, {_counted(done.parcels, 'parcel')},"
        f" {_counted(done.customers, 'customer')}."
    )
    if done.unknown:
        process.say(f"Passed over, because unknown: {', '.join(done.unknown)}.")
    return 0


@orders.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@async_command
async def list_(as_json: bool) -> int:
    """List everybody's orders."""
    async with _database() as database:
        found, damaged = await _readable(database)
    if found or as_json:
        rows = [order.model_dump(mode="json") for order in found]
        show(rows, as_json, lambda row: [row[name] for name in SHOWN])
    if damaged:
        process.say(f"Damaged in the database, and left out: {', '.join(damaged)}.")
    return 1 if damaged else 0


@asynccontextmanager
async def _database() -> AsyncIterator["Database"]:
    from agent import settings
    from agent.store import open_database

    chosen = settings.load()
    if chosen.shop_url is not None:
        raise Problem(
            "The orders are in the shop that SUPPORT_SHOP_URL names, and only there. Nothing was"
            " done here."
        )
    database = open_database(chosen.database_url)
    try:
        yield database
    finally:
        await database.close()


async def _readable(database: "Database") -> "tuple[list[Order], list[str]]":
    """Everybody's orders; those that cannot be read only by their ids."""
    from sqlalchemy import select

    from tools.shop.sql import SqlShop
    from tools.shop.tables import orders as table

    shop = SqlShop(database)
    with suppress(*BAD_ROW):
        return await shop.all_orders(), []
    async with database.connect() as connection:
        ids = (await connection.scalars(select(table.c.order_id))).all()
    found: list[Order] = []
    damaged: list[str] = []
    for order_id in ids:
        try:
            found += filter(None, [await shop.order(order_id)])
        except BAD_ROW:
            damaged.append(order_id)
    return found, damaged


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
