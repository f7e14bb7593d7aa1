"""`stream check`: what the guard makes of a stream that was recorded, by us or by any tool."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process
from agent.problems import Problem
from agent.wire.assemble import StreamInterrupted

if TYPE_CHECKING:
    from agent.wire.protocols import Protocol


@click.group()
def stream() -> None:
    """Recorded event streams (SSE) of a model's server."""


@stream.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(file: Path, as_json: bool) -> int:
    """Say of each call in FILE whether it came whole, and where it broke.

    FILE is the body of a streamed response: OpenAI's Responses or Chat Completions, or Anthropic's
    Messages.
    """
    from agent.wire.protocols import SIZE, Events

    events = list(Events(process.text_of(file, SIZE, "Nothing was checked.").encode()))
    found = _found(events, _protocol(events, file))
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_lines(found)))
    return 0 if found["whole"] else 1


def _found(events: list[str], protocol: "Protocol") -> dict[str, Any]:
    from agent.wire.guard import take

    assembler, problem = protocol.assembler(), None
    try:
        for data in events:
            if take(assembler, data):
                break
        assembler.whole()
    except StreamInterrupted as error:
        problem = str(error)
    calls = [
        {"call_id": c.call_id, "name": c.name, "whole": c.done, "broke": c.broke}
        for c in assembler.calls
    ]
    about = {"protocol": protocol.name, "whole": problem is None, "problem": problem}
    return {**about, "calls": calls}


def _protocol(events: list[str], file: Path) -> "Protocol":
    """By the first event that is told by one protocol alone."""
    from agent.wire.protocols import of_event

    for data in events:
        try:
            protocol = of_event(json.loads(data))
        except (ValueError, RecursionError):
            continue
        if protocol:
            return protocol
    raise Problem(
        f"{file} is no event stream of the Responses, Chat Completions or Messages API."
        " Nothing was checked."
    )


def _lines(found: dict[str, Any]) -> list[str]:
    """A line a call, and what follows for the response."""
    from tools.locales import clean

    calls = [
        f"{call['call_id'] or '(no id)'} {call['name'] or '(no name)'}: "
        + ("whole" if call["whole"] else f"broke: {call['broke']}")
        for call in found["calls"]
    ]
    verdict = (
        f"whole: all of this {found['protocol']} response may be used"
        if found["whole"]
        else f"interrupted: {found['problem']} Nothing of this response may be used."
    )
    return [*map(clean, calls), verdict]
