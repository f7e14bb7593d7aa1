"""`feedback`: whether a turn was any good."""

from typing import TYPE_CHECKING

import click

from agent.cli.staff import at_work, tell, words

if TYPE_CHECKING:
    from agent.cli.office import Office


@click.command()
@click.option("--thread", required=True, help="The conversation.")
@click.option(
    "--turn", type=click.IntRange(1, 2**31 - 1), required=True, help="Which of its turns."
)
@click.option("--score", type=click.Choice(["up", "down"]), required=True, help="How it was.")
@words("--comment", "Why; only where SUPPORT_TRACE_CONTENT allows words.")
def feedback(thread: str, turn: int, score: str, comment: str) -> int:
    """Note on a turn's trace whether it was any good."""
    from agent import tracing
    from agent.cli import process
    from agent.feedback import give, trace_of
    from agent.traces_spool import NotTaken

    async def work(office: "Office") -> int:
        client = tracing.client(office.settings)
        trace = await trace_of(office.database, thread, turn)
        try:
            give(client, trace, up=score == "up", comment=comment)
        except NotTaken as refusal:
            process.say(f"{refusal} Nothing was noted; try again.")
            return 4
        return tell(f"Noted on the trace {trace}.")

    return at_work(work)
