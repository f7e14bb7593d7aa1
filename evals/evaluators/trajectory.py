"""The calls that were asked for, exactly: none missing, none more, in as many rounds."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from evals.evaluators.seen import Seen, Wrong, orders_of


def trajectory(seen: Seen) -> Iterator[Wrong]:
    expected = Counter(_call(*call.popitem()) for call in map(dict, seen.turn.calls))
    made = Counter(_call(call["tool"], call["arguments"]) for call in seen.calls)
    for call, times in sorted((expected - made).items()):
        yield Wrong(f"{call} was not called{_times(times)}")
    for call, times in sorted((made - expected).items()):
        yield Wrong(f"{call} was called{_times(times)} and should not have been")
    rounds = len({call["round"] for call in seen.calls})
    if seen.turn.rounds is not None and rounds != seen.turn.rounds:
        yield Wrong(f"the calls came in {rounds} responses of the model, not {seen.turn.rounds}")


def _call(tool: str, arguments: Any) -> str:
    """A call in words. How ids are spelt, and the order of several, makes no difference."""
    if isinstance(arguments, dict):
        names = {"order_id", "order_ids"}
        rest = {name: value for name, value in arguments.items() if name not in names}
        said = [
            *sorted(orders_of(arguments)),
            *([json.dumps(rest, sort_keys=True)] if rest else []),
        ]
        return f"{tool}({', '.join(said)})"
    return f"{tool}({arguments})"


def _times(times: int) -> str:
    return f" {times} times" if times > 1 else ""
