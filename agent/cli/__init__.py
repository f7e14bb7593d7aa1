"""`support-agent`: the agent, its shop and its operation on the command line.

Exit codes: 0 done; 1 the work says no; 2 wrong usage or unreadable input; 3 a confirmation is
pending; 4 trouble outside the agent. Commands import what they need when they run.
"""

import io
import sys
from pkgutil import resolve_name
from signal import SIGINT
from typing import Any

import click

from agent.cli import process

COMMANDS = {
    "ask": "agent.cli.ask:ask",
    "decide": "agent.cli.ask:decide",
    "chat": "agent.cli.chat:chat",
    "orders": "agent.cli.orders:orders",
    "approvals": "agent.cli.approvals:approvals",
    "audit": "agent.cli.approvals:audit",
    "threads": "agent.cli.threads:threads",
    "customers": "agent.cli.threads:customers",
    "tickets": "agent.cli.threads:tickets",
    "traces": "agent.cli.traces:traces",
    "feedback": "agent.cli.traces:feedback",
    "costs": "agent.cli.costs:command",
    "check-model": "agent.cli.check_model:check_model",
    "history": "agent.cli.history:history",
    "stream": "agent.cli.stream:stream",
    "evals": "evals.cli:evals",
}


class _Lazy(click.Group):
    """A group whose commands are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        return resolve_name(place) if place else None


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--traceback", is_flag=True, help="Show where an unexpected error came from.")
@click.version_option(package_name="support-agent")
def cli(traceback: bool) -> None:
    """A customer-support agent that answers for several orders at once."""


def main(arguments: list[str] | None = None) -> Any:
    """The console script: whatever happens, a person gets a sentence, a program an exit code."""
    signals = process.take() if arguments is None else []
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        _check_encoding(arguments)
        sys.exit(cli.main(arguments, prog_name="support-agent", standalone_mode=False) or 0)
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        process.say(said.getvalue())
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        process.say("Stopped. Nothing more was done.")
        sys.exit(128 + (signals or [SIGINT])[0])
    except SystemExit:
        raise
    except BaseException as error:
        if "--traceback" in arguments:
            raise
        sentence, code = _told(error)
        process.say(sentence)
        sys.exit(code)


def _check_encoding(arguments: list[str]) -> None:
    """Bytes that are no text arrive as halves of characters, which no file or server takes."""
    for place, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"Argument {place} is not text in this locale.") from None


def _told(error: BaseException) -> tuple[str, int]:
    """What a person reads of an error, and the exit code."""
    from agent.problems import Problem
    from tools.database import DatabaseProblem, NoRoom
    from tools.tool import BadDeclaration

    if isinstance(error, process.Unwritten | NoRoom):
        return str(error), 1
    if isinstance(error, Problem | DatabaseProblem | BadDeclaration):
        return str(error), 2
    return (
        f"Something unexpected happened ({type(error).__name__}); this command was not finished.\n"
        "Run it as `support-agent --traceback …` to see where."
    ), 1
