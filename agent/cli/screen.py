"""What a person sees: progress on stderr, the answer on stdout."""

from typing import Any

import click
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from tools.locales import clean

COLOURS = {"failed": "red", "awaiting_confirmation": "yellow"}
MARKS = {"ok": ("✓", "green"), "error": ("✗", "red")}


class Progress:
    """Prints which calls run and in which order they finish."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._finished = 0

    def __call__(self, event: dict[str, Any]) -> None:
        what = clean(f"{event['tool']} {event['subject']}")
        match event["event"]:
            case "call_named":
                self._line("·", "dim", what, event["call_id"])
            case "call_started":
                self._line("▸", "cyan", what, event["call_id"])
            case "call_finished":
                self._finished += 1
                mark, colour = MARKS[event["status"]]
                self._line(mark, colour, what, f"{event['call_id']}, finished as {self._finished}")
            case "retry":
                self._line("↻", "yellow", "the response broke off, asking again", event["status"])

    def _line(self, mark: str, colour: str, what: str, note: str) -> None:
        line = Text.assemble(("  " + mark, colour), f" {what}  ", (clean(note), "dim"))
        self.console.print(line, soft_wrap=True)


def show_answer(report: dict[str, Any]) -> None:
    """The answer, framed on a terminal, plain text elsewhere."""
    console = Console(highlight=False)
    if report["message"] and console.is_terminal:
        colour = COLOURS.get(report["status"], "green")
        console.print(Panel(Text(report["message"]), border_style=colour, expand=False))
    elif report["message"]:
        click.echo(report["message"])
    for asked in report["confirmations"]:
        wanted = clean(f"{asked['tool']} {asked['subject']}")
        click.echo(f"waits for your yes or no: {wanted}  {clean(asked['call_id'])}", err=True)
    if report["status"] == "with_person":
        click.echo("This conversation is with a member of our staff.", err=True)
    if report["error"] is not None:
        click.echo(report["error"]["message"], err=True)
