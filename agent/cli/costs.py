"""`costs`: what turns have used and cost."""

from typing import TYPE_CHECKING, Any

import click

from agent.cli.staff import as_json, at_work, show

if TYPE_CHECKING:
    from agent.cli.office import Office
    from agent.costs import By


@click.command("costs")
@click.option(
    "--by",
    type=click.Choice(["turn", "thread", "customer", "day"]),
    default="day",
    help="What is added up.",
)
@as_json
def command(by: "By", as_json: bool) -> int:
    """Show what turns have used and cost, by the prices of the day."""
    from agent.costs import costs

    async def work(office: "Office") -> int:
        return show(await costs(office.database, by), as_json, lambda row: _cells(row, by))

    return at_work(work)


def _cells(row: dict[str, Any], by: str) -> tuple[str, ...]:
    tokens = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    words = (f"{row[name]} {name.removesuffix('_tokens')}" for name in tokens)
    cost = f"{row['known_usd']} USD"
    if row["unknown"]:
        known = row["turns"] - row["unknown"]
        cost = (
            f"cost unknown ({cost} for {known} of {row['turns']} turns)"
            if known
            else "cost unknown"
        )
    return (row[by], f"turns: {row['turns']}", *words, cost)
