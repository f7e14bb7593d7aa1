"""What an evaluator sees of one turn, and what it says of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from evals.case import Case, Turn
from evals.forms import forms, plain
from evals.reading import Reading, Vocabulary
from evals.truth import Money, Truth
from tools.ids import normalise_order_id

Verdict = Literal["pass", "fail", "cannot tell"]


class Wrong(NamedTuple):
    """What is wrong, in a sentence. `verdict` is "cannot tell" where it may be right after all."""

    why: str
    verdict: Verdict = "fail"


@dataclass(frozen=True)
class Seen:
    """One turn of a case, played: what was expected, and what came.

    report: the turn as `ask --json` prints it. history: its messages as the model is sent them,
    each `{"asks": [call id…]}`, `{"told": call id, "output": …}` or `{"says": text}`.
    """

    case: Case
    turn: Turn
    report: dict[str, Any]
    history: Sequence[dict[str, Any]]
    truth: Truth

    @property
    def message(self) -> str:
        return str(self.report["message"])

    @property
    def calls(self) -> list[dict[str, Any]]:
        return list(self.report["calls"])

    @cached_property
    def reading(self) -> Reading:
        sums = [form for money in self.sums for form in forms(money, self.case.language)]
        quoted = [*sums, *self.policy_text]
        named = self.turn.order_ids
        return Reading(self.message, Vocabulary(self.truth, self.case.language, named, quoted))

    @cached_property
    def sums(self) -> list[Money]:
        """The sum of the orders that the case adds up, one a currency."""
        totals: dict[str, Money] = {}
        for order_id in self.turn.derived.sum:
            for total in self.truth.orders[order_id].values["total"]:
                assert isinstance(total, Money)
                before = totals.get(total.currency, Money(total.amount * 0, total.currency))
                totals[total.currency] = Money(before.amount + total.amount, total.currency)
        return list(totals.values())

    @cached_property
    def policy_text(self) -> list[str]:
        """The lines of the policy that the case quotes, in the language of the case."""
        if self.turn.policy is None:
            return []
        folder = files("tools.policy")
        translated = folder / f"{self.turn.policy}.{self.case.language}.md"
        file = translated if translated.is_file() else folder / f"{self.turn.policy}.md"
        body = file.read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")[2]
        return [line for line in plain(body).splitlines() if line]


Evaluator = Callable[[Seen], Iterator[Wrong]]


def orders_of(arguments: Any) -> list[str]:
    """The orders that a call's arguments name, in the spelling of the shop."""
    if not isinstance(arguments, dict):
        return []
    named = [arguments.get("order_id"), *(arguments.get("order_ids") or ())]
    return [_normal(each) for each in named if isinstance(each, str)]


def _normal(order_id: str) -> str:
    try:
        return normalise_order_id(order_id)
    except ValueError:
        return order_id
