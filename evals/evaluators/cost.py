"""What a turn took: no more tokens, and no more time, than `gate.toml` allows."""

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

from evals.case import Fault
from evals.evaluators.seen import Seen, Wrong, orders_of
from evals.rules import rules

ENOUGH = 4  # calls with delays of their own: so many do not end in the wrong order by chance


def cost(seen: Seen) -> Iterator[Wrong]:
    for name in ("input_tokens", "output_tokens"):
        if (used := seen.report["usage"][name]) > (most := getattr(rules().limits, name)):
            yield Wrong(f"the turn took {used} {name.replace('_', ' ')}, and {most} are allowed")


def latency(seen: Seen) -> Iterator[Wrong]:
    if seen.seconds > (most := rules().limits.seconds):
        yield Wrong(f"the turn took {seen.seconds:.0f} s, and {most:.0f} are allowed")
    for number, calls in groupby(seen.calls, key=lambda call: call["round"]):
        if _one_by_one(seen, list(calls)):
            yield Wrong(f"the calls of response {number} were made one after the other")


def _one_by_one(seen: Seen, calls: list[dict[str, Any]]) -> bool:
    """Whether calls of which each should end before the one that was asked before it did not.

    It goes by the order in which they ended, not by the clock: a busy machine is no mistake.
    """
    delayed = [(delay, call["finished_at"]) for call in calls if (delay := _delay(seen, call))]
    falling = all(before > after for (before, _), (after, _) in pairwise(delayed))
    ends = [end for _, end in delayed]
    return len(delayed) >= ENOUGH and falling and ends == sorted(ends)


def _delay(seen: Seen, call: dict[str, Any]) -> float:
    faults = [seen.case.faults.get(id_, Fault()) for id_ in orders_of(call["arguments"])]
    return sum(fault.delay for fault in faults if fault.kind is None)
