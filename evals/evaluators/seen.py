"""What an evaluator sees of one turn, and what it says of it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from importlib.resources import files
from typing import Any, NamedTuple

from evals.case import Case, Turn, Verdict, orders_of
from evals.forms import forms, plain
from evals.reading import Reading
from evals.truth import Money, OrderFacts, Truth, Value
from evals.words import any_of


class Wrong(NamedTuple):
    """What is wrong, in a sentence. `verdict` is "cannot tell" where it may be right after all."""

    why: str
    verdict: Verdict = "fail"


@dataclass(frozen=True)
class Seen:
    """One turn of a case, played: what was expected, and what came.

    report: the turn as `ask --json` prints it. history: its messages as the model is sent them,
    each `{"asks": [call id…]}`, `{"told": call id, "output": …}` or `{"says": text}`. asked: what
    the customer was asked to confirm, each with what had been `changed_already`. truth: what the
    shop holds after the turn; before: at the beginning of the case. seconds: that the turn took.
    """

    case: Case
    turn: Turn
    report: dict[str, Any]
    history: Sequence[dict[str, Any]]
    asked: Sequence[dict[str, Any]]
    truth: Truth
    before: Truth
    seconds: float = 0

    @property
    def is_last(self) -> bool:
        return self.turn is self.case.turns[-1]

    @property
    def message(self) -> str:
        return str(self.report["message"])

    @property
    def calls(self) -> list[dict[str, Any]]:
        return list(self.report["calls"])

    @cached_property
    def reading(self) -> Reading:
        language, turn = self.case.language, self.turn
        sums = [form for money in self.sums for form in forms(money, language)]
        quoted = [*sums, *self.policy_text, *self.truth.tickets]
        return Reading(self.message, self.known, language, turn.order_ids, quoted, bool(turn.deeds))

    @cached_property
    def known(self) -> Truth:
        """The shop's facts, and the values that the turn's writes were asked with."""
        orders = dict(self.truth.orders)
        for given in (given for call in self.turn.calls for given in call.values()):
            if stated := _stated(given):
                order = orders.get(given["order_id"], OrderFacts("", {}))
                values = {**order.values, "wish": (*order.values.get("wish", ()), stated)}
                orders[given["order_id"]] = replace(order, values=values)
        return replace(self.truth, orders=orders) if orders != self.truth.orders else self.truth

    def states(self, value: Value, text: str) -> bool:
        """Whether a value stands in a text, in any of its forms."""
        return any_of(forms(value, self.case.language)).search(plain(text)) is not None

    @cached_property
    def sums(self) -> list[Money]:
        """The sum of the orders that the case adds up, one a currency."""
        totals: defaultdict[str, Decimal] = defaultdict(Decimal)
        for order_id in self.turn.derived.get("sum", ()):
            for total in self.truth.orders[order_id].values["total"]:
                assert isinstance(total, Money)
                totals[total.currency] += total.amount
        return [Money(amount, currency) for currency, amount in totals.items()]

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


__all__ = ["Evaluator", "Seen", "Wrong", "ended", "orders_of"]

Evaluator = Callable[[Seen], Iterator[Wrong]]


def ended(call: dict[str, Any]) -> str:
    """How a call ended: ok, pending, or the kind of its error."""
    return str(call["error"]["kind"] if call["error"] else call["status"])


def _stated(arguments: dict[str, Any]) -> Money | str | None:
    if "amount" in arguments:
        return Money(Decimal(arguments["amount"]), arguments["currency"])
    return arguments.get("address")
