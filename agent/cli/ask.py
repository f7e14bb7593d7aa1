"""`ask` and `chat`: a customer's side of the conversation."""

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process

if TYPE_CHECKING:
    from agent.cli.session import Session

customer_option = click.option("--customer", help="Who is asking; SUPPORT_CUSTOMER by default.")
thread_option = click.option("--thread", help="The conversation to go on with.")


@click.command()
@click.argument("text")
@customer_option
@thread_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole turn as one JSON object.")
def ask(text: str, customer: str | None, thread: str | None, as_json: bool) -> int:
    """Ask one question and print the answer."""
    return _run(_ask(text, customer, thread, as_json))


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


def _run(command: Coroutine[Any, Any, int]) -> int:
    """Runs a command to its end, which a tool that ignores being cancelled does not hold up."""
    with asyncio.Runner() as runner:
        code = runner.run(command)
        if runner.run(_something_runs_on()):
            sys.stdout.flush()
            os._exit(code)
    return code


async def _something_runs_on() -> bool:
    """Whether something was left behind that does not end within a second of being told to."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    return bool(left) and bool((await asyncio.wait(left, timeout=1))[1])


async def _ask(text: str, customer: str | None, thread: str | None, as_json: bool) -> int:
    from agent import settings
    from agent.problems import check_question

    check_question(text)
    from agent.cli.screen import Progress, show_answer
    from agent.cli.session import open_session

    async with open_session(settings.load(), customer) as session:
        thread_id = await session.thread(thread)
        _tell_thread(thread, thread_id)
        turn = await session.ask(thread_id, text, Progress())
    with _kept(thread_id):
        if as_json:
            click.echo(json.dumps(turn, ensure_ascii=False, indent=2))
        else:
            show_answer(turn)
    return _exit_code(turn)


def _converse(runner: asyncio.Runner, session: "Session", thread: str | None) -> None:
    from agent.cli.screen import Progress, show_answer
    from agent.problems import Problem

    thread_id = runner.run(session.thread(thread))
    _tell_thread(thread, thread_id)
    while text := _line():
        try:
            turn = runner.run(session.ask(thread_id, text, Progress()))
        except Problem as problem:
            process.say(str(problem))
        else:
            with _kept(thread_id):
                show_answer(turn)


def _kept(thread_id: str) -> AbstractContextManager[None]:
    return process.done(f"The turn was done, and is kept in the thread {thread_id}.")


def _line() -> str:
    from agent.problems import Problem

    try:
        return str(click.prompt("you", default="", show_default=False, err=True)).strip()
    except click.Abort as ended:
        if isinstance(ended.__context__, EOFError):  # Ctrl-D, not Ctrl-C
            return ""
        raise
    except (OSError, RuntimeError):
        raise Problem("The standard input cannot be read. Nothing more was asked.") from None


def _tell_thread(wanted: str | None, thread_id: str) -> None:
    if wanted is None:
        click.echo(f"thread {thread_id}", err=True)


def _exit_code(turn: dict[str, Any]) -> int:
    return {"failed": 1, "awaiting_confirmation": 3}.get(turn["status"], 0)
