"""`check-model`: whether the configured model can do what the agent asks of it."""

from typing import TYPE_CHECKING

import click

from agent.cli.staff import async_command

if TYPE_CHECKING:
    from agent.settings import Settings
    from agent.wire.probe import Findings

YES = "usable"
NO = "not usable as it is set"
UNKNOWN = "nothing was found out; try again later"
EXIT = {YES: 0, NO: 1, UNKNOWN: 4}
PROMPT = "set SUPPORT_ANSWER_FORMAT=prompt."
NO_RESPONSES_API = (404, 405, 501)
BUSY = (408, 409, 429)


@click.command()
@async_command
async def check_model() -> int:
    """Ask the model for tools, parallel calls, strict schemas and streaming."""
    from agent.settings import load
    from agent.wire.connect import connect
    from agent.wire.probe import probe

    settings = load()
    found = await probe(connect(settings))
    about = settings.model
    if settings.provider in ("offline", "openai"):
        about += ", Chat Completions" if settings.openai_api == "chat" else ", Responses API"
    verdict, *lines = _verdict(settings, found)
    click.echo(f"model            {about}")
    click.echo(f"tools            {found.tools}")
    click.echo(f"parallel calls   {found.parallel}")
    click.echo(f"strict schemas   {found.strict}")
    click.echo(f"streaming        {found.streaming}")
    click.echo("\n".join([f"verdict          {verdict}", *lines]))
    return EXIT[verdict]


def _verdict(settings: "Settings", found: "Findings") -> list[str]:
    """Whether it is usable, and behind that what to set or to know."""
    if found.trouble:
        return _trouble(settings, found)
    if found.streaming == "no":
        return [NO, "The server does not stream, and the agent reads nothing but a stream."]
    if found.tools == "no":
        return [NO, "No call came, or none that could be made: take another model."]
    told = [YES]
    if found.strict == "no" and settings.answer_format != "prompt":
        told = [YES, f"The server takes no schema of the answer, or does not keep to it: {PROMPT}"]
        if found.beside_tools == "no":
            told = [NO, f"Calls stop where the answer has a schema: {PROMPT}"]
    if found.parallel == "no":
        told.append("Calls come one at a time: the answers are right, and take more rounds.")
    return told


def _trouble(settings: "Settings", found: "Findings") -> list[str]:
    responses = settings.provider == "openai" and settings.openai_api == "responses"
    if responses and found.status in NO_RESPONSES_API:
        return [
            NO,
            f"{found.trouble} It does not know the model, or has no Responses API: see the model's"
            " name, or set SUPPORT_OPENAI_API=chat.",
        ]
    lasting = found.status is not None and found.status < 500 and found.status not in BUSY
    return [NO if lasting else UNKNOWN, found.trouble]
