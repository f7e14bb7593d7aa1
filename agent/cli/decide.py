"""`decide`: the customer's answers to pending confirmations."""

from typing import TYPE_CHECKING

import click

from agent.cli.ask import customer_option, run, show

if TYPE_CHECKING:
    from agent.cli.session import CallDecision


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
@click.option("--json", "as_json", is_flag=True, help="Print the whole turn as one JSON object.")
@click.pass_context
def decide(
    ctx: click.Context, /, thread: str, customer: str | None, as_json: bool, **said: tuple[str, ...]
) -> int:
    """Answer pending confirmations, and go on."""
    return run(_decide(thread, customer, _decisions(ctx), as_json))


async def _decide(
    thread: str, customer: str | None, decisions: "list[CallDecision]", as_json: bool
) -> int:
    from agent import settings
    from agent.cli.screen import Progress
    from agent.cli.session import open_session

    async with open_session(settings.load(), customer) as session:
        await session.thread(thread)
        turn = await session.decide(thread, decisions, Progress())
    return show(turn, as_json, customer)


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
