"""What came of each case: an outcome each time that it was played, a result of all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from pydantic import TypeAdapter

from evals.case import Verdict

Fate = Literal["fail", "cannot tell", "trouble", "pass"]
"""A verdict, or "trouble" where none could be had, as the model did not answer."""
WORST_FIRST: tuple[Fate, ...] = ("fail", "cannot tell", "trouble", "pass")


@dataclass(frozen=True)
class Finding:
    """What is wrong with a case. turn: counted from 1, 0 where it is about all of them."""

    evaluator: str
    turn: int
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        where = f"{self.evaluator}, turn {self.turn}" if self.turn else self.evaluator
        return f"{where}: {'cannot tell, ' * (self.verdict == 'cannot tell')}{self.why}"


@dataclass(frozen=True)
class Outcome:
    """One case, played once. turns: what came of each, as `Stage.play` gives it."""

    case: str
    repeat: int
    verdict: Fate
    findings: list[Finding]
    seconds: float
    turns: list[dict[str, Any]]


OUTCOME = TypeAdapter(Outcome)


@dataclass(frozen=True)
class Result:
    """One case, all the times that it was played."""

    case: str
    outcomes: Sequence[Outcome]

    @property
    def passes(self) -> int:
        return sum(outcome.verdict == "pass" for outcome in self.outcomes)

    @property
    def plays(self) -> int:
        return len(self.outcomes)

    @property
    def fate(self) -> Fate:
        return worst(outcome.verdict for outcome in self.outcomes)


def results_of(outcomes: Iterable[Outcome]) -> list[Result]:
    by_case = groupby(outcomes, key=lambda outcome: outcome.case)
    return [Result(case, list(group)) for case, group in by_case]


def worst(verdicts: Iterable[Fate]) -> Fate:
    return min(verdicts, key=WORST_FIRST.index, default="pass")
