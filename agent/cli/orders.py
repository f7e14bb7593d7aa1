"""`orders`: the operator's side of the shop. Imports neither the graph nor a model's client."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process

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
def import_(file: Path, empty: bool) -> int:
    """Load orders from a JSON or CSV file, all or none; they replace those of the same id."""
    return asyncio.run(_import(file, empty))


@orders.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_(as_json: bool) -> int:
    """List everybody's orders."""
    return asyncio.run(_list(as_json))


def _database() -> "Database":
    from agent import settings
    from agent.problems import Problem
    from agent.store import open_database

    chosen = settings.load()
    if chosen.shop_url is not None:
        raise Problem(
            "The orders are in the shop that SUPPORT_SHOP_URL names, and only there. Nothing was"
            " done here."
        )
    return open_database(chosen.database_url)


async def _import(file: Path, empty: bool) -> int:
    from agent.problems import Problem
    from tools.shop.importer import ImportProblem, NotEmpty, import_shop, read_shop_file

    database = _database()
    try:
        shop_file = await asyncio.to_thread(read_shop_file, file)
        done = await import_shop(database, shop_file, empty=empty)
    except NotEmpty as problem:
        process.say(
            f"{problem}\nName a new database in SUPPORT_DATABASE_URL, or leave out --empty."
        )
        return 1
    except ImportProblem as problem:
        raise Problem(str(problem)) from None
    finally:
        await database.close()
    loaded = (
        f"Loaded {_counted(done.orders, 'order')} ({done.replaced} of them replaced),"
        f" {_counted(done.items, 'item')}, {_counted(done.parcels, 'parcel')},"
        f" {_counted(done.customers, 'customer')}."
    )
    with process.done(loaded):
        click.echo(loaded)
    if done.unknown:
        process.say(f"Passed over, because unknown: {', '.join(done.unknown)}.")
    return 0


async def _list(as_json: bool) -> int:
    database = _database()
    try:
        found, damaged = await _readable(database)
    finally:
        await database.close()
    rows = [order.model_dump(mode="json") for order in found]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        _print(rows)
    if damaged:
        process.say(f"Damaged in the database, and left out: {', '.join(damaged)}.")
    return 1 if damaged else 0


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


def _print(rows: list[dict[str, Any]]) -> None:
    """A line an order, in columns of one width."""
    from tools.locales import clean

    lines = [[clean(str(row[name])) for name in SHOWN] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
