"""`ask`: one question of a customer, and what the commands beside it share."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import Any

import click

from agent.cli import process

customer_option = click.option("--customer", help="Who is asking; SUPPORT_CUSTOMER by default.")
thread_option = click.option("--thread", help="The conversation to go on with.")


@click.command()
@click.argument("text")
@customer_option
@thread_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole turn as one JSON object.")
def ask(text: str, customer: str | None, thread: str | None, as_json: bool) -> int:
    """Ask one question and print the answer."""
    return run(_ask(text, customer, thread, as_json))


def run(command: Coroutine[Any, Any, int]) -> int:
    """Runs a command to its end, which a tool that ignores being cancelled does not hold up."""
    with asyncio.Runner() as runner:
        code = runner.run(command)
        if runner.run(_something_runs_on()):
            from agent import tracing

            sys.stdout.flush()
            tracing.flush()
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
    from agent.cli.screen import Progress
    from agent.cli.session import open_session

    async with open_session(settings.load(), customer) as session:
        thread_id = await session.thread(thread)
        tell_thread(thread, thread_id)
        turn = await session.ask(thread_id, text, Progress())
    return show(turn, as_json, customer)


def show(turn: dict[str, Any], as_json: bool, customer: str | None) -> int:
    from agent.cli.screen import show_answer

    with kept(turn["thread_id"]):
        if as_json:
            click.echo(json.dumps(turn, ensure_ascii=False, indent=2))
        else:
            show_answer(turn)
            _tell_how(turn, customer)
    return _exit_code(turn)


def _tell_how(turn: dict[str, Any], customer: str | None) -> None:
    """Names the command that answers the first confirmation that is pending."""
    from tools.locales import clean

    for asked in turn["confirmations"][:1]:
        words = ["--thread", turn["thread_id"], *(["--customer", customer] if customer else ())]
        options = shlex.join(map(clean, [*words, "--confirm", asked["call_id"]]))
        click.echo(f"answer with: support-agent decide {options}    (or --reject)", err=True)


def kept(thread_id: str) -> AbstractContextManager[None]:
    return process.done(f"The turn was done, and is kept in the thread {thread_id}.")


def tell_thread(wanted: str | None, thread_id: str) -> None:
    if wanted is None:
        click.echo(f"thread {thread_id}", err=True)


def _exit_code(turn: dict[str, Any]) -> int:
    return {"failed": 1, "awaiting_confirmation": 3}.get(turn["status"], 0)
