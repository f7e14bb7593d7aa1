"""`support-agent evals`: yes or no, with an exit code."""

import asyncio
import os
from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--model", default="offline", show_default=True, help="The model, as SUPPORT_MODEL.")
@click.option("--cases", default="*", help="Which cases, such as 'core/*', or paths of case files.")
@click.option("--case", help="One case by its name, shown in full.")
@click.option("--repeat", type=click.IntRange(1), default=1, help="How often each case is played.")
@click.option("--concurrency", type=click.IntRange(1), default=4, help="Cases played at a time.")
@click.option("--cap", type=click.FloatRange(0), default=10, help="Dollars to spend at most (10).")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="For the reports.")
@click.option("--upload", is_flag=True, help="Make it an experiment at LangSmith as well.")
@click.option("--tone", metavar="MODEL", help="Let a model rate the tone; no part of the verdict.")
@click.option(
    "--update-baseline", is_flag=True, help="Keep this run as what later ones must match."
)
def evals(model: str, **options: Any) -> int:
    """Play the cases, and say whether the agent answered as it must (evals/gate.toml).

    With --out, reports are written there, and a run that was broken off goes on where it was.

    Exit codes: 0 yes; 1 no: a case failed, crashed or cannot be told; 2 wrong usage, or a case
    file with a mistake; 4 inconclusive: the model, or LangSmith, did not answer, or there is no
    stored run on a real model yet that this one could be compared with.
    """
    # The variable, so that a wrong name is refused in the same words; and langsmith would draw a
    # progress bar of its own, of rows as they come.
    deployed = os.environ.get("SUPPORT_MODEL", "offline")
    os.environ.update(SUPPORT_MODEL=model, TQDM_DISABLE="1")
    from evals.session import Session

    return asyncio.run(Session(deployed, **options).run())
