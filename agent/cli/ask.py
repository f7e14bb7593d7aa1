"""`ask` and `decide`: one turn of a customer, printed; and what `chat` shares with them."""

import json
import shlex
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process
from agent.cli.staff import async_command
from agent.problems import check_question

if TYPE_CHECKING:
    from agent.cli.session import CallDecision

customer_option = click.option("--customer", help="Who is asking; SUPPORT_CUSTOMER by default.")
thread_option = click.option("--thread", help="The conversation to go on with.")
turn_as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print the whole turn as one JSON object."
)


@click.command()
@click.argument("text")
@customer_option
@thread_option
@turn_as_json
@async_command
async def ask(text: str, customer: str | None, thread: str | None, as_json: bool) -> int:
    """Ask one question and print the answer."""
    check_question(text)
    from agent import settings
    from agent.cli.screen import Progress
    from agent.cli.session import open_session

    async with open_session(settings.load(), customer) as session:
        thread_id = await session.thread(thread)
        tell_thread(thread, thread_id)
        turn = await session.ask(thread_id, text, Progress())
    return _show(turn, as_json, customer)


class InOrder(click.Command):
    """A command whose options mean something by their order, which it leaves in `ctx.meta`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        rest = {name: iter(each) for name, each in values.items() if isinstance(each, list)}
        named = [str(each.name) for each in order]
        ctx.meta[InOrder.__name__] = [(name, next(rest[name])) for name in named if name in rest]
        return super().parse_args(ctx, args)


@click.command(cls=InOrder)
@click.option("--thread", required=True, help="The conversation that waits.")
@customer_option
@click.option("--confirm", multiple=True, metavar="CALL_ID", help="Yes to this call.")
@click.option("--reject", multiple=True, metavar="CALL_ID", help="No to this call.")
@click.option("--reason", multiple=True, help="Why the call rejected before it is not wanted.")
@turn_as_json
@click.pass_context
@async_command
async def decide(
    ctx: click.Context, /, thread: str, customer: str | None, as_json: bool, **said: tuple[str, ...]
) -> int:
    """Answer pending confirmations, and go on."""
    from agent import settings
    from agent.cli.screen import Progress
    from agent.cli.session import open_session

    decisions = _decisions(ctx)
    async with open_session(settings.load(), customer) as session:
        await session.thread(thread)
        turn = await session.decide(thread, decisions, Progress())
    return _show(turn, as_json, customer)


def _decisions(ctx: click.Context) -> "list[CallDecision]":
    """The answers as they were given: each reason belongs to the rejection before it."""
    from agent.cli.session import CallDecision

    decisions: list[CallDecision] = []
    for name, value in ctx.meta[InOrder.__name__]:
        if name != "reason":
            decisions.append(CallDecision(value, name == "confirm"))
        elif not decisions or decisions[-1].confirmed or decisions[-1].reason:
            raise click.UsageError("A --reason follows the --reject that it is for.")
        else:
            decisions[-1] = decisions[-1]._replace(reason=value)
    if not decisions:
        raise click.UsageError("Say which calls: --confirm CALL_ID, --reject CALL_ID.")
    return decisions


def _show(turn: dict[str, Any], as_json: bool, customer: str | None) -> int:
    from agent.cli.screen import show_answer

    with kept(turn["thread_id"]):
        if as_json:
            click.echo(json.dumps(turn, ensure_ascii=False, indent=2))
        else:
            show_answer(turn)
            _tell_how(turn, customer)
    return {"failed": 1, "awaiting_confirmation": 3}.get(turn["status"], 0)


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
