"""What came of a run: lines for a person, JSON lines for a program, the exit code."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from agent.problems import Problem
from evals.runner import Finding, Outcome

MARKS = {"pass": "✓", "fail": "✗", "cannot tell": "?", "trouble": "!"}
WORST_FIRST = ("fail", "cannot tell", "trouble", "pass")


def lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line a case, and a sentence for each thing that is wrong with it."""
    for case, group in groupby(outcomes, key=lambda outcome: outcome.case):
        repeats = list(group)
        wrong = [outcome for outcome in repeats if outcome.verdict != "pass"]
        times = f"  ({len(wrong)} of {len(repeats)} times)" if wrong and len(repeats) > 1 else ""
        yield f"{MARKS[_worst(repeats)]} {case}{times}"
        yield from _sentences([finding for outcome in wrong for finding in outcome.findings])


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    cases = [list(group) for _, group in groupby(outcomes, key=lambda outcome: outcome.case)]
    counts = Counter(_worst(case) for case in cases)
    words = {"fail": "failed", "cannot tell": "undecided", "trouble": "without an answer"}
    rest = [f"{counts[verdict]} {word}" for verdict, word in words.items() if counts[verdict]]
    parts = ", ".join([f"{counts['pass']} of {len(cases)} cases passed", *rest])
    return f"{parts}, in {seconds:.0f} s."


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 all passed; 1 something is wrong or cannot be told; 4 only the model did not answer."""
    return {"pass": 0, "trouble": 4}.get(_worst(outcomes), 1)


def write(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Writes `results.jsonl`, one outcome a line, in the order of the cases."""
    make(folder)
    file = folder / "results.jsonl"
    rows = [json.dumps(outcome.as_json(), ensure_ascii=False) for outcome in outcomes]
    with _told(file):
        file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


def make(folder: Path) -> None:
    """Makes the folder for the results. Raises Problem."""
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Problem(f"{path} cannot be written ({error.strerror}).") from None


def _worst(outcomes: Sequence[Outcome]) -> str:
    verdicts = {outcome.verdict for outcome in outcomes}
    return next(verdict for verdict in WORST_FIRST if verdict in verdicts)


def _sentences(findings: Sequence[Finding]) -> Iterator[str]:
    """One for each evaluator: the first thing that it found. The rest is in `results.jsonl`."""
    by_evaluator: dict[str, list[Finding]] = {}
    for finding in dict.fromkeys(findings):
        by_evaluator.setdefault(finding.evaluator, []).append(finding)
    for (name, turn, verdict, why), *rest in by_evaluator.values():
        where = f"{name}, turn {turn}" if turn else name
        unsure = "cannot tell, " if verdict == "cannot tell" else ""
        yield f"    {where}: {unsure}{why}" + (f"; and {len(rest)} more" if rest else "")
