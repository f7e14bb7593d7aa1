"""Yes, no or inconclusive: what `gate.toml` asks, held against the results of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import comb, sqrt
from statistics import NormalDist, mean
from typing import Literal

from evals.baseline import Comparison
from evals.outcomes import Result
from evals.rules import rules

Answer = Literal["yes", "no", "inconclusive"]
EXIT: dict[Answer, int] = {"yes": 0, "no": 1, "inconclusive": 4}


@dataclass(frozen=True)
class Judgement:
    """answer: of the gate. why: a sentence for each thing that decided it. lines: the figures."""

    answer: Answer
    why: list[str]
    lines: list[str]


def is_critical(case: str) -> bool:
    return any(fnmatchcase(case, pattern) for pattern in rules().critical)


def judge(
    results: Sequence[Result], compared: Comparison, kind: Literal["offline", "model"]
) -> Judgement:
    """Trouble outside the agent alone is no answer, nor is a real model without a comparison."""
    told = [each for each in results if each.fate != "trouble"]
    critical = [each for each in told if is_critical(each.case)]
    others = [each for each in told if not is_critical(each.case)]
    needed, rate = getattr(rules().rate, kind), pass_at_1(others)
    low, high = (f"{end:.1%}" for end in interval(rate, len(others)))
    passed = f"not critical: {rate:.1%} of {len(others)} passed"
    wrong = [f"{each.case} is critical and failed" for each in critical if each.fate == "fail"]
    wrong += [f"{each.case} cannot be told" for each in told if each.fate == "cannot tell"]
    wrong += [f"{passed}, and {needed:.1%} must"] * (rate < needed)
    wrong += compared.alarms(rules().statistics.chance)
    missing = [f"{each.case} got no answer" for each in results if each.fate == "trouble"]
    if kind == "model" and compared.problem:
        missing.append(f"there is nothing to compare with: {compared.problem}")
    k = max((each.plays for each in results), default=1)
    whole = sum(each.passes == each.plays for each in critical)
    once, each_time = f"{pass_at_1(results):.1%}", f"{pass_each_time(results):.1%}"
    lines = [f"pass@1 {once} (one play passes), pass^{k} {each_time} ({k} of {k} plays pass)"]
    lines += [f"critical: {whole} of {len(critical)} cases passed {k} of {k} times"] * bool(
        critical
    )
    lines += [f"{passed} ({low} to {high})"] * bool(others)
    lines += [*compared.lines(), _what_shows(len(results))]
    return Judgement(
        "no" if wrong else "inconclusive" if missing else "yes", wrong or missing, lines
    )


def pass_at_1(results: Sequence[Result]) -> float:
    """How likely a case passes when it is played once."""
    return mean(each.passes / each.plays for each in results) if results else 1.0


def pass_each_time(results: Sequence[Result]) -> float:
    """pass^k: the share of the cases that passed all k times."""
    return mean(each.passes == each.plays for each in results) if results else 1.0


def interval(rate: float, number: int) -> tuple[float, float]:
    """Wilson's interval of a rate seen in a number of cases."""
    if not number:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + rules().statistics.confidence) / 2)
    middle, spread = rate + z * z / (2 * number), z * z / (4 * number * number)
    half = z * sqrt(rate * (1 - rate) / number + spread)
    ends = ((middle + side * half) / (1 + z * z / number) for side in (-1, 1))
    low, high = (min(1.0, max(0.0, end)) for end in ends)
    return low, high


def smallest_drop(cases: int, fewest: int) -> float | None:
    """The drop of which a comparison finds at least so many cases, as often as `power` asks."""
    drops = (per_mille / 1000 for per_mille in range(1, 1001))
    seen = (drop for drop in drops if _at_least(fewest, cases, drop) >= rules().statistics.power)
    return next(seen, None)


def _at_least(fewest: int, cases: int, drop: float) -> float:
    fewer = range(min(fewest, cases + 1))
    return 1 - sum(comb(cases, n) * drop**n * (1 - drop) ** (cases - n) for n in fewer)


def _what_shows(cases: int) -> str:
    statistics = rules().statistics
    fewest = Comparison.fewest(statistics.chance)
    drop = smallest_drop(cases, fewest)
    if drop is None:
        return f"So few cases ({cases}) show no drop against a baseline."
    return (
        f"Against a baseline, {cases} cases show a drop of {drop:.1%} in {statistics.power:.0%} of"
        f" all runs: {fewest} that turn wrong are more than chance. A smaller one may pass unseen."
    )
