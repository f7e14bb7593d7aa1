"""`support-agent evals`: yes or no, with an exit code."""

import asyncio
import os
from pathlib import Path

import click


@click.command()
@click.option("--model", default="offline", show_default=True, help="The model, as SUPPORT_MODEL.")
@click.option("--cases", default="*", help="Which cases, such as 'core/*', or paths of case files.")
@click.option("--case", help="One case by its name.")
@click.option("--repeat", type=click.IntRange(1), default=1, help="How often each case is played.")
@click.option("--concurrency", type=click.IntRange(1), default=4, help="Cases played at a time.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="For results.jsonl.")
def evals(
    model: str, cases: str, case: str | None, repeat: int, concurrency: int, out: Path | None
) -> int:
    """Play the cases, and say whether the agent answered as it must.

    Exit codes: 0 all passed; 1 a case failed, crashed or cannot be told; 2 wrong usage, or a case
    file with a mistake; 4 the model did not answer.
    """
    # The variable, so that a wrong name is refused in the same words; and langsmith would draw a
    # progress bar of its own, of rows as they come.
    os.environ.update(SUPPORT_MODEL=model, TQDM_DISABLE="1")
    return asyncio.run(_evals(cases, case, repeat, concurrency, out))


async def _evals(
    pattern: str, name: str | None, repeat: int, concurrency: int, out: Path | None
) -> int:
    import logging
    import time
    from tempfile import TemporaryDirectory

    from agent import settings
    from agent.wire.connect import connect
    from evals import report
    from evals.cases import find
    from evals.runner import run
    from evals.target import Stage
    from evals.truth import truth_of

    chosen = settings.load()
    connect(chosen)  # a missing key is said once, before anything is played
    if out is not None:
        report.make(out)
    files = find(pattern, name)
    logging.getLogger("langsmith").setLevel(logging.CRITICAL)  # a crash is told by its outcome
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        stage = Stage(Path(folder), chosen)
        await stage.prepare()
        for file in files:
            file.check(truth_of(stage.template))
        cases = [file.case for file in files]
        outcomes = await run(cases, stage, repeat=repeat, concurrency=concurrency)
    for line in report.lines(outcomes):
        click.echo(line)
    click.echo(report.summary(outcomes, time.monotonic() - began))
    if out is not None:
        click.echo(f"Written: {report.write(outcomes, out)}", err=True)
    return report.exit_code(outcomes)
