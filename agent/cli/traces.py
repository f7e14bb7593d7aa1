"""`traces` and `feedback`: what LangSmith has not got yet, and whether a turn was any good."""

from collections import Counter

import click

from agent.cli import process
from agent.cli.staff import Office, at_work, tell, words

LEFT = {
    "busy": "are being written or sent by another process.",
    "refused": "were refused by LangSmith, and stay.",
    "unreadable": "cannot be read, and stay.",
}


@click.group()
def traces() -> None:
    """See to traces that LangSmith did not take at once."""


@traces.command()
def send() -> int:
    """Send the traces that wait in SUPPORT_TRACE_FOLDER."""
    from agent import settings, tracing
    from agent.traces_spool import NotTaken, send_left

    chosen, told = settings.load(), Counter[str]()
    client = tracing.client(chosen)
    try:
        told.update(send_left(chosen.trace_folder, client.ingest))
    except NotTaken as refusal:
        process.say(
            f"{refusal} {told['sent']} traces were sent before; the others wait. Try again."
        )
        return 4
    more = [f" {told[what]} {rest}" for what, rest in LEFT.items() if told[what]]
    stayed = told["refused"] or told["unreadable"]
    return tell(f"{told['sent']} traces were sent." + "".join(more), code=1 if stayed else 0)


@click.command()
@click.option("--thread", required=True, help="The conversation.")
@click.option(
    "--turn", type=click.IntRange(1, 2**31 - 1), required=True, help="Which of its turns."
)
@click.option("--score", type=click.Choice(["up", "down"]), required=True, help="How it was.")
@words("--comment", "Why; only where SUPPORT_TRACE_CONTENT allows words.")
@at_work
async def feedback(office: Office, thread: str, turn: int, score: str, comment: str) -> int:
    """Note on a turn's trace whether it was any good."""
    from agent import tracing
    from agent.feedback import give, trace_of
    from agent.traces_spool import NotTaken

    client = tracing.client(office.settings)
    trace = await trace_of(office.database, thread, turn)
    try:
        give(client, trace, up=score == "up", comment=comment)
    except NotTaken as refusal:
        process.say(f"{refusal} Nothing was noted; try again.")
        return 4
    return tell(f"Noted on the trace {trace}.")
