"""Yes, no or inconclusive: what `gate.toml` asks, held against the results of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import comb, sqrt
from statistics import NormalDist, mean
from typing import Literal

from evals.baseline import Comparison, Kind
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


def judge(results: Sequence[Result], compared: Comparison, kind: Kind) -> Judgement:
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
    whole = sum(each.fate == "pass" for each in critical)
    once, each_time = f"{pass_at_1(results):.1%}", f"{pass_each_time(results):.1%}"
    lines = [f"pass@1 {once} (one play passes), pass^{k} {each_time} ({k} of {k} plays pass)"]
    if critical:
        lines.append(f"critical: {whole} of {len(critical)} cases passed {k} of {k} times")
    if others:
        lines.append(f"{passed} ({low} to {high})")
    lines += [*compared.lines(), _what_shows(len(results))]
    answer: Answer = "no" if wrong else "inconclusive" if missing else "yes"
    return Judgement(answer, wrong or missing, lines)


def pass_at_1(results: Sequence[Result]) -> float:
    """How likely a case passes when it is played once."""
    return mean(each.passes / each.plays for each in results) if results else 1.0


def pass_each_time(results: Sequence[Result]) -> float:
    """pass^k: the share of the cases that passed all k times."""
    return mean(each.fate == "pass" for each in results) if results else 1.0


def interval(rate: float, number: int) -> tuple[float, float]:
    """Wilson's interval of a rate seen in a number of cases."""
    if not number:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + rules().statistics.confidence) / 2)
    middle, spread = rate + z * z / (2 * number), z * z / (4 * number * number)
    half = z * sqrt(rate * (1 - rate) / number + spread)
    scale = 1 + z * z / number
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def smallest_drop(cases: int, fewest: int) -> float | None:
    """The drop of which a comparison finds at least so many cases, as often as `power` asks."""
    for drop in (per_mille / 1000 for per_mille in range(1, 1001)):
        fewer = range(min(fewest, cases + 1))
        unseen = sum(comb(cases, n) * drop**n * (1 - drop) ** (cases - n) for n in fewer)
        if 1 - unseen >= rules().statistics.power:
            return drop
    return None


def _what_shows(cases: int) -> str:
    statistics = rules().statistics
    # So many must be worse, and none better, to be more than chance: a sign test.
    fewest = next(n for n in range(1, 99) if 2 / 2**n <= statistics.chance)
    drop = smallest_drop(cases, fewest)
    if drop is None:
        return f"So few cases ({cases}) show no drop against a baseline."
    return (
        f"Against a baseline, {cases} cases show a drop of {drop:.1%} in {statistics.power:.0%} of"
        f" all runs: {fewest} that turn wrong are more than chance. A smaller one may pass unseen."
    )
