"""`costs`: what turns have used and cost."""

from typing import TYPE_CHECKING, Any

import click

from agent.cli.staff import Office, as_json, at_work, show

if TYPE_CHECKING:
    from agent.costs import By


@click.command("costs")
@click.option(
    "--by",
    type=click.Choice(["turn", "thread", "customer", "day"]),
    default="day",
    help="What is added up.",
)
@as_json
@at_work
async def command(office: Office, by: "By", as_json: bool) -> int:
    """Show what turns have used and cost, by the prices of the day."""
    from agent.costs import costs

    return show(await costs(office.database, by), as_json, lambda row: _cells(row, by))


def _cells(row: dict[str, Any], by: str) -> tuple[str, ...]:
    tokens = ("input", "cached", "output", "reasoning")
    words = (f"{row[f'{name}_tokens']} {name}" for name in tokens)
    cost = f"{row['known_usd']} USD"
    if row["unknown"]:
        known = row["turns"] - row["unknown"]
        cost = "cost unknown" + f" ({cost} for {known} of {row['turns']} turns)" * bool(known)
    return (row[by], f"turns: {row['turns']}", *words, cost)
