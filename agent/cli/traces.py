"""`traces`: what LangSmith has not got yet."""

from collections import Counter

import click

from agent.cli.staff import tell

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
    from agent.cli import process
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
    more = [f" {told[what]} {words}" for what, words in LEFT.items() if told[what]]
    stayed = told["refused"] or told["unreadable"]
    return tell(f"{told['sent']} traces were sent." + "".join(more), code=1 if stayed else 0)
