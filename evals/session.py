"""One run of the command: what is chosen, what it may cost, played, judged and reported."""

import asyncio
import fnmatch
import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from langsmith.utils import LangSmithError
from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress

from agent import pricing, settings
from agent.problems import Problem
from agent.settings import Settings
from agent.wire.connect import connect
from evals import baseline, gate, rules, tone, upload
from evals.case import Case
from evals.cases import CaseFile, find
from evals.folder import Folder
from evals.outcomes import Outcome, results_of
from evals.report import Report, conversation, lines
from evals.runner import run
from evals.target import Stage
from evals.truth import truth_of

TROUBLE = 4


@dataclass
class Session:
    """The command's options. deployed: the model that the environment names, whatever `model` is.

    lost: what LangSmith did not take.
    """

    deployed: str
    cases: str = "*"
    case: str | None = None
    repeat: int = 1
    concurrency: int = 4
    cap: float = 10
    out: Path | None = None
    upload: bool = False
    tone: str | None = None
    update_baseline: bool = False
    settings: Settings = field(default_factory=settings.load)
    lost: list[Exception] = field(default_factory=list)

    async def run(self) -> int:
        """The exit code. Raises Problem before anything is played."""
        if self.update_baseline and not self._is_whole:
            why = "The baseline is of all cases; name no --case, no --cases."
            raise Problem(f"{why} No case was run.")
        connect(self.settings)  # a missing key is said once
        self._check_rules()
        rater = tone.judge(self.tone) if self.tone else None
        self._say_cost()
        stored, tested = baseline.load(), baseline.tested(self._played, self.settings.model)
        folder = Folder(self.out, tested.digest) if self.out else None
        began = time.monotonic()
        with _silence(), closing(folder) if folder else nullcontext():
            try:
                outcomes = await self._play(folder)
            except LangSmithError as error:
                click.echo(f"LangSmith did not take the cases ({type(error).__name__}).", err=True)
                return TROUBLE
            report = self._judged(outcomes, tested, stored, time.monotonic() - began)
            if rater:
                report.judgement.lines.append(await tone.line(rater, outcomes))
            played = conversation(outcomes) if self.case else ()
            found = lines(report.results, whole=self.case is not None)
            for line in [*played, *found, report.summary, *report.figures, report.verdict]:
                click.echo(line)
            if folder:
                folder.write(report)
                click.echo(f"Written: {folder.path / 'report.html'}", err=True)
        if self.lost:
            click.echo("LangSmith did not take all of it; the experiment is not whole.", err=True)
        return gate.EXIT[report.judgement.answer] or (TROUBLE if self.lost else 0)

    @property
    def _is_offline(self) -> bool:
        return self.settings.provider == "offline"

    @property
    def _is_whole(self) -> bool:
        return (self.cases, self.case) == ("*", None)

    @cached_property
    def _files(self) -> Sequence[CaseFile]:
        return find(self.cases, self.case)

    @property
    def _played(self) -> list[Case]:
        """A vendor's model breaks off when it likes."""
        return [file.case for file in self._files if self._is_offline or not file.case.breaks]

    def _check_rules(self) -> None:
        try:
            critical = rules.rules().critical
        except (OSError, ValueError) as error:
            wrong = str(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise Problem(f"{rules.FILE}: {wrong}. No case was run.") from None
        names = [file.case.name for file in self._files]
        for each in critical if self._is_whole else ():
            if not fnmatch.filter(names, each):
                raise Problem(f"{rules.FILE}: critical: no case fits {each!r}. No case was run.")

    def _say_cost(self) -> None:
        """Before a vendor is asked: what that costs. Raises Problem where it may be too much."""
        limits = rules.rules().limits.model_dump(exclude={"seconds"})
        turns = sum(len(case.turns) for case in self._played)
        asked = [] if self._is_offline else [(self.settings.model, self.repeat * turns, limits)]
        asked += [(self.tone, turns, tone.TOKENS)] if self.tone else []
        total = 0.0
        for model, number, tokens in asked:
            most = pricing.cost(model, {name: number * each for name, each in tokens.items()})
            total += float(most or 0)
            said = f"Turns for {model}: {number}. They cost up to {most or 0:.2f} USD"
            if most is None:
                said = f"What {model} costs is not known, so --cap does not hold"
            elif not total <= self.cap:  # also where it is no number
                then = "No case was run; choose fewer cases, or raise --cap."
                raise Problem(f"{said}, and {self.cap:g} are allowed. {then}")
            click.echo(f"{said}.", err=True)

    async def _play(self, folder: Folder | None) -> list[Outcome]:
        console, cases = Console(stderr=True), self._played
        bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        # After Ctrl-C, a thread may still copy a database into it.
        with TemporaryDirectory(ignore_cleanup_errors=True) as place, bar as progress:
            stage = Stage(Path(place), self.settings, cap=self.cap)
            await stage.prepare()
            for file in self._files:
                file.check(truth_of(stage.template(file.case)))
            client = upload.client(self.lost.append) if self.upload else None
            examples = upload.in_step(client, cases, whole=self._is_whole) if client else None
            # An experiment is of one piece.
            done = folder.done() if folder and not client else []
            task = progress.add_task("evals", total=len(cases) * self.repeat, completed=len(done))

            def told(outcome: Outcome) -> None:
                progress.update(task, advance=1, description=outcome.case)
                if folder:
                    folder.keep(outcome)

            return await run(
                cases,
                stage,
                repeat=self.repeat,
                concurrency=self.concurrency,
                done=done,
                told=told,
                client=client,
                examples=examples,
            )

    def _judged(
        self, outcomes: Sequence[Outcome], now: baseline.Tested, stored: baseline.Runs, took: float
    ) -> Report:
        kind: baseline.Kind = "offline" if self._is_offline else "model"
        results = results_of(outcomes)
        compared = baseline.compare(results, now, stored.get(kind), whole=self._is_whole)
        if self.update_baseline and compared.problem:
            compared = baseline.Comparison()
        judged = gate.judge(results, compared, kind)
        if self.update_baseline:
            baseline.store(kind, results, now, judged.answer)
        release: str = judged.answer
        if self._is_offline and release == "yes":
            asked = {case.name: now.cases[case.name] for case in self._played if not case.breaks}
            now = now.model_copy(update={"cases": asked})  # what a real model is asked
            release = baseline.release(now, stored.get("model"), self.deployed)
        about = {case.name: case.description for case in self._played}
        return Report(results, judged, now, release, took, about)


@contextmanager
def _silence() -> Iterator[None]:
    """Crashes and faults are told by their outcomes, and what is torn by Ctrl-C by nobody."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    except asyncio.CancelledError:  # what is still running then tells of it later
        before = logging.CRITICAL
        warnings.simplefilter("ignore", RuntimeWarning)
        raise
    finally:
        logging.disable(before)
