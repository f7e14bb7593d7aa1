"""The calls that were asked for, exactly, in as many rounds, each with its one output.

An output stands under its call's own id, in the order of the calls. All of it takes no more tokens,
and no more time, than `gate.toml` allows.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, groupby
from typing import Any

from evals.case import Fault
from evals.evaluators.seen import Seen, Wrong, orders_of
from evals.rules import rules

ENOUGH = 4  # calls with delays of their own: so many do not end in the wrong order by chance


def protocol(seen: Seen) -> Iterator[Wrong]:
    error = seen.report["error"] or {}
    expected = _expected(seen)
    if seen.report["status"] != expected or error.get("kind") != seen.turn.fails:
        told = ": ".join(filter(None, [seen.report["status"], error.get("message")]))
        yield Wrong(f"the turn is {told}, and not {seen.turn.fails or expected}")
    if expected in ("answered", "failed"):
        yield from _history(seen)
    yield from _outputs(seen)


def _expected(seen: Seen) -> str:
    if seen.turn.fails:
        return "failed"
    if "asked" in seen.turn.deeds.values():
        return "awaiting_confirmation"
    return "with_person" if seen.turn.escalated else "answered"


def _history(seen: Seen) -> Iterator[Wrong]:
    open_calls: list[str] = []
    for message in seen.history:
        if "told" in message:
            if open_calls[:1] != [message["told"]]:
                yield Wrong(f"an output stands under {message['told']!r}, out of order or twice")
            open_calls = [call_id for call_id in open_calls if call_id != message["told"]]
            continue
        if open_calls:
            yield Wrong(f"the model was asked again without an output for {open_calls}")
        open_calls = list(message.get("asks", ()))
    if open_calls or not seen.history or seen.history[-1].get("says") != seen.message:
        yield Wrong("the last message of the thread is not what the customer reads")


def _outputs(seen: Seen) -> Iterator[Wrong]:
    told = [message["output"] for message in seen.history if "told" in message]
    if told != [call["output"] for call in seen.calls if call["status"] != "pending"]:
        yield Wrong("the outputs in the thread are not those of the calls")
    for call in seen.calls:
        asked, output = orders_of(call["arguments"]), call["output"] or {}
        about = {output.get("order_id"), (output.get("data") or {}).get("order_id")} - {None}
        for order_id in about - set(asked) if len(asked) == 1 else ():
            yield Wrong(f"the call about {asked[0]} has an output about {order_id}")


def trajectory(seen: Seen) -> Iterator[Wrong]:
    expected = Counter(_call(*call.popitem()) for call in map(dict, seen.turn.calls))
    made = Counter(_call(call["tool"], call["arguments"]) for call in seen.calls)
    for call, times in sorted((expected - made).items()):
        yield Wrong(f"{call} was not called" + f" {times} times" * (times > 1))
    for call, times in sorted((made - expected).items()):
        yield Wrong(f"{call} was called{f' {times} times' * (times > 1)} and should not have been")
    rounds = len({call["round"] for call in seen.calls})
    if seen.turn.rounds is not None and rounds != seen.turn.rounds:
        yield Wrong(f"the calls came in {rounds} responses of the model, not {seen.turn.rounds}")


def _call(tool: str, arguments: Any) -> str:
    """A call in words. How ids and amounts are spelt, the order of several, and free words make
    no difference.
    """
    if not isinstance(arguments, dict):
        return f"{tool}({arguments})"
    names = {"order_id", "order_ids", "reason", "summary"}
    rest = {name: value for name, value in arguments.items() if name not in names}
    amount = rest.get("amount")
    if isinstance(amount, str) and "." in amount:
        rest["amount"] = amount.rstrip("0").rstrip(".")
    stated = [json.dumps(rest, sort_keys=True)] if rest else []
    return f"{tool}({', '.join([*sorted(orders_of(arguments)), *stated])})"


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
    """Whether most of them ended before others that take less time.

    It goes by the order in which they ended, not by the clock: a busy machine is no mistake.
    """
    over = [call for call in calls if call["finished_at"]]
    delayed = [(delay, call["finished_at"]) for call in over if (delay := _delay(seen, call))]
    pairs = [pair for pair in combinations(sorted(delayed), 2) if pair[0][0] < pair[1][0]]
    turned = [pair for pair in pairs if pair[0][1] > pair[1][1]]
    return len(delayed) >= ENOUGH and 2 * len(turned) > len(pairs)


def _delay(seen: Seen, call: dict[str, Any]) -> float:
    faults = [seen.case.faults.get(id_, Fault()) for id_ in orders_of(call["arguments"])]
    return sum(fault.delay for fault in faults if fault.kind is None)
