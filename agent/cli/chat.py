"""`chat`: questions, answers and confirmations as a conversation."""

import asyncio
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process
from agent.cli.ask import customer_option, kept, tell_thread, thread_option
from agent.problems import Problem

if TYPE_CHECKING:
    from agent.cli.session import Session


@click.command()
@customer_option
@thread_option
def chat(customer: str | None, thread: str | None) -> int:
    """Talk with the agent; an empty line or Ctrl-D ends it."""
    from agent import settings
    from agent.cli.session import open_session

    # The prompt stands between the runs of the loop: a thread that waits for a line cannot be
    # stopped, and would keep the process from ending at Ctrl-C.
    with asyncio.Runner() as runner:
        opened = open_session(settings.load(), customer)
        session = runner.run(opened.__aenter__())
        try:
            _converse(runner, session, thread)
        finally:
            runner.run(opened.__aexit__(None, None, None))
    return 0


def _converse(runner: asyncio.Runner, session: "Session", thread: str | None) -> None:
    from agent.cli.screen import show_answer

    thread_id = runner.run(session.thread(thread))
    tell_thread(thread, thread_id)
    asked = runner.run(session.pending(thread_id)) if thread else []
    while text := _line(asked):
        try:
            turn = runner.run(_next_turn(session, thread_id, asked, text))
            asked = runner.run(session.pending(thread_id)) if turn["confirmations"] else []
        except Problem as problem:
            process.say(str(problem))
        else:
            with kept(thread_id):
                show_answer(turn)


async def _next_turn(
    session: "Session", thread: str, asked: list[dict[str, Any]], text: str
) -> dict[str, Any]:
    """A yes or no answers the first confirmation that is pending; anything else is a message."""
    from agent.cli.screen import Progress
    from agent.cli.session import CallDecision

    for first in asked[:1]:
        if (confirmed := yes_or_no(text, first["locale"])) is not None:
            decision = CallDecision(first["call_id"], confirmed)
            return await session.decide(thread, [decision], Progress())
    return await session.ask(thread, text, Progress())


def _line(asked: list[dict[str, Any]]) -> str:
    from tools.locales import clean

    prompt = "you"
    for first in asked[:1]:
        prompt = f"{clean(first['question'])} ({'/'.join(words_of(first['locale']))})"
    try:
        return str(click.prompt(prompt, default="", show_default=False, err=True)).strip()
    except click.Abort as ended:
        if isinstance(ended.__context__, EOFError):  # Ctrl-D, not Ctrl-C
            return ""
        raise
    except (OSError, RuntimeError):
        raise Problem("The standard input cannot be read. Nothing more was asked.") from None


def words_of(language: str) -> tuple[str, str]:
    """Yes and no in a language."""
    from tools.locales import locale

    values = locale(language).data["values"]
    return str(values["yes"]), str(values["no"])


def yes_or_no(text: str, language: str) -> bool | None:
    """What a short answer says, in the language of the question or in English; None for neither."""
    said = text.strip(" .!").casefold()
    for place, answer in enumerate((True, False)):
        words = {words_of(language)[place].casefold(), words_of("en")[place]}
        if said in words | {word[0] for word in words}:
            return answer
    return None
