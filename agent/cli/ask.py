"""`ask`, `decide` and `chat`: a customer's side of the conversation."""

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
    from agent.cli.session import CallDecision, Session


class InOrder(click.Command):
    """A command whose options mean something by their order, which it leaves in `ctx.meta`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        rest = {name: iter(each) for name, each in values.items() if isinstance(each, list)}
        named = [str(each.name) for each in order]
        ctx.meta[InOrder.__name__] = [(name, next(rest[name])) for name in named if name in rest]
        return super().parse_args(ctx, args)


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


@click.command(cls=InOrder)
@click.option("--thread", required=True, help="The conversation that waits.")
@customer_option
@click.option("--confirm", multiple=True, metavar="CALL_ID", help="Yes to this call.")
@click.option("--reject", multiple=True, metavar="CALL_ID", help="No to this call.")
@click.option("--reason", multiple=True, help="Why the call rejected before it is not wanted.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole turn as one JSON object.")
@click.pass_context
def decide(
    ctx: click.Context, /, thread: str, customer: str | None, as_json: bool, **said: tuple[str, ...]
) -> int:
    """Answer pending confirmations, and go on."""
    return _run(_decide(thread, customer, _decisions(ctx), as_json))


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
    from agent.cli.screen import Progress
    from agent.cli.session import open_session

    async with open_session(settings.load(), customer) as session:
        thread_id = await session.thread(thread)
        _tell_thread(thread, thread_id)
        turn = await session.ask(thread_id, text, Progress())
    return _show(turn, as_json)


async def _decide(
    thread: str, customer: str | None, decisions: "list[CallDecision]", as_json: bool
) -> int:
    from agent import settings
    from agent.cli.screen import Progress
    from agent.cli.session import open_session

    async with open_session(settings.load(), customer) as session:
        await session.thread(thread)
        turn = await session.decide(thread, decisions, Progress())
    return _show(turn, as_json)


def _decisions(ctx: click.Context) -> "list[CallDecision]":
    """The answers as they were given: each reason belongs to the rejection before it."""
    from agent.cli.session import CallDecision

    decisions: list[CallDecision] = []
    for name, value in ctx.meta[InOrder.__name__]:
        if name in ("confirm", "reject"):
            decisions.append(CallDecision(value, name == "confirm"))
        elif name == "reason" and (
            not decisions or decisions[-1].confirmed or decisions[-1].reason
        ):
            raise click.UsageError("A --reason follows the --reject that it is for.")
        elif name == "reason":
            decisions[-1] = decisions[-1]._replace(reason=value)
    if not decisions:
        raise click.UsageError("Say which calls: --confirm CALL_ID, --reject CALL_ID.")
    return decisions


def _show(turn: dict[str, Any], as_json: bool) -> int:
    from agent.cli.screen import show_answer

    with _kept(turn["thread_id"]):
        if as_json:
            click.echo(json.dumps(turn, ensure_ascii=False, indent=2))
        else:
            show_answer(turn)
    return _exit_code(turn)


def _converse(runner: asyncio.Runner, session: "Session", thread: str | None) -> None:
    from agent.cli.screen import show_answer
    from agent.problems import Problem

    thread_id = runner.run(session.thread(thread))
    _tell_thread(thread, thread_id)
    turn: dict[str, Any] = {}
    while text := _line(turn):
        try:
            turn = runner.run(_next_turn(session, thread_id, turn, text))
        except Problem as problem:
            process.say(str(problem))
        else:
            with _kept(thread_id):
                show_answer(turn)


async def _next_turn(
    session: "Session", thread: str, before: dict[str, Any], text: str
) -> dict[str, Any]:
    """A yes or no answers the first confirmation that is pending; anything else is a message."""
    from agent.cli.screen import Progress
    from agent.cli.session import CallDecision

    for asked in before.get("confirmations", [])[:1]:
        if (confirmed := yes_or_no(text, asked["locale"])) is not None:
            decision = CallDecision(asked["call_id"], confirmed)
            return await session.decide(thread, [decision], Progress())
    return await session.ask(thread, text, Progress())


def _kept(thread_id: str) -> AbstractContextManager[None]:
    return process.done(f"The turn was done, and is kept in the thread {thread_id}.")


def _line(turn: dict[str, Any]) -> str:
    from agent.problems import Problem

    pending = turn.get("confirmations", [])
    prompt = f"you ({'/'.join(words_of(pending[0]['locale']))})" if pending else "you"
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


def _tell_thread(wanted: str | None, thread_id: str) -> None:
    if wanted is None:
        click.echo(f"thread {thread_id}", err=True)


def _exit_code(turn: dict[str, Any]) -> int:
    return {"failed": 1, "awaiting_confirmation": 3}.get(turn["status"], 0)
