"""What commands share: how they run, the office that the staff's work in, how they list."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from agent.cli import process

if TYPE_CHECKING:
    from agent.desk import SqlDesk
    from agent.ledger import Ledger
    from agent.settings import Settings
    from tools.database import Database

P = ParamSpec("P")
LONGEST = 1000  # characters of what is kept of a member of staff's words


def _words(_ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    if len(text) > LONGEST or (parameter.required and not any(map(str.isalnum, text))):
        raise click.BadParameter(f"1 to {LONGEST} characters are needed.")
    return text


def words(option: str, help: str) -> Callable[[Any], Any]:
    return click.option(option, default="", callback=_words, help=help)


by_staff = click.option("--as", "staff", required=True, callback=_words, help="Who does it.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def async_command(command: Callable[P, Coroutine[Any, Any, int]]) -> Callable[P, int]:
    """Runs a command to its end, which a tool that ignores being cancelled does not hold up."""

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> int:
        with asyncio.Runner() as runner:
            code = runner.run(command(*arguments, **options))
            if runner.run(_something_runs_on()):
                from agent import tracing

                sys.stdout.flush()
                tracing.flush()
                os._exit(code)
        return code

    return run


async def _something_runs_on() -> bool:
    """Whether something was left behind that does not end within a second of being told to."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    return bool(left) and bool((await asyncio.wait(left, timeout=1))[1])


@dataclass(frozen=True)
class Office:
    """What the staff's commands work with: the ledger and the desk, without graph or model."""

    settings: "Settings"
    database: "Database"
    ledger: "Ledger"
    desk: "SqlDesk"


@asynccontextmanager
async def open_office(settings: "Settings") -> AsyncIterator[Office]:
    """Opens the database and the shop, and closes both."""
    from agent.desk import SqlDesk
    from agent.ledger import Ledger
    from agent.store import open_database
    from agent.write_tools import WriteTools
    from tools.policy.action_rules import action_rules
    from tools.registry import WRITES
    from tools.shop import close_shop, open_shop

    database = open_database(settings.database_url)
    shop = open_shop(database, settings.shop_url, settings.shop_token)
    desk = SqlDesk(database)
    tools = WriteTools({tool.name: tool for tool in WRITES}, shop, desk, settings.tool_timeout)
    try:
        ledger = Ledger(database, tools, action_rules(WRITES))
        yield Office(settings, database, ledger, desk)
    finally:
        await close_shop(shop)
        await database.close()


def at_work(command: Callable[Concatenate[Office, P], Awaitable[int]]) -> Callable[P, int]:
    """A command that is given the office of the settings first, to work in until it ends."""

    @async_command
    @wraps(command)
    async def working(*arguments: P.args, **options: P.kwargs) -> int:
        from agent import settings

        async with open_office(settings.load()) as office:
            return await command(office, *arguments, **options)

    return working


def show(
    rows: Sequence[dict[str, Any]], as_json: bool, line: Callable[[Any], Iterable[Any]]
) -> int:
    """Prints rows: as a JSON array, or a line each, its cells in columns of one width."""
    from tools.locales import clean

    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    lines = [[clean(str(cell)) for cell in line(row)] for row in rows]
    if not lines:
        process.say("There is nothing to list.")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        click.echo("  ".join(padded).rstrip())
    return 0


def tell(done: str, code: int = 0) -> int:
    """Says what was done, on stderr where stdout cannot be written."""
    with process.done(done):
        click.echo(done)
    return code


def refuse(why: object) -> int:
    process.say(str(why))
    return 1


def minute(time: str) -> str:
    """A time of the database, in UTC, as people read it."""
    return f"{time[:16].replace('T', ' ')} UTC"
