"""What the staff's commands share: their options, how they run, how they list."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process

if TYPE_CHECKING:
    from agent.cli.office import Office

LONGEST = 1000  # characters of what is kept of a member of staff's words


def _words(_ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    if len(text) > LONGEST or (parameter.required and not any(map(str.isalnum, text))):
        raise click.BadParameter(f"1 to {LONGEST} characters are needed.")
    return text


def words(option: str, help: str) -> Callable[[Any], Any]:
    return click.option(option, default="", callback=_words, help=help)


by_staff = click.option("--as", "staff", required=True, callback=_words, help="Who does it.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def at_work(work: "Callable[[Office], Awaitable[int]]") -> int:
    """Runs a command in the office of the settings; its exit code."""
    from agent import settings
    from agent.cli.office import open_office

    async def run() -> int:
        async with open_office(settings.load()) as office:
            return await work(office)

    return asyncio.run(run())


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
