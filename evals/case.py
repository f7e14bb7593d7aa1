"""A case in Python: what one of the files in `cases/` says, once it was found good."""

from decimal import Decimal
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from evals.truth import Money
from tools.ids import normalise_order_id

Verdict = Literal["pass", "fail", "cannot tell"]
FaultKind = Literal["timeout", "error", "malformed", "lost"]
Deed = Literal[
    "asked", "done", "repeated", "refused", "rejected", "withdrawn",
    "not_found", "awaiting_approval", "unknown_outcome",
]  # fmt: skip


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fault(Model):
    """delay: seconds until the shop answers. wrong_subject: the order it answers about instead.

    kind: "malformed" answers with what is no order; "lost" makes a change and hangs up.
    """

    kind: FaultKind | None = None
    delay: float = 0
    wrong_subject: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_kind(cls, stated: Any) -> Any:
        return {"kind": stated} if isinstance(stated, str) else stated


class Turn(Model):
    """What the customer asks, and what must be true of the answer (see `schema.json`).

    derived: the orders that something follows from: a sum, the first or last to arrive.
    """

    ask: str
    calls: tuple[dict[str, dict[str, Any]], ...]
    rounds: int | None = None
    decide: dict[str, Literal["confirm", "reject"]] = {}
    facts: dict[str, tuple[str, ...]] = {}
    failures: dict[str, str] = {}
    deeds: dict[str, Deed] = {}
    derived: dict[Literal["sum", "first", "last"], tuple[str, ...]] = {}
    policy: str | None = None
    forbidden: tuple[str, ...] = ()
    escalated: bool = False
    fails: str | None = None

    @property
    def order_ids(self) -> set[str]:
        """The orders that the answer may speak of."""
        return {*self.facts, *self.failures, *self.deeds, *chain(*self.derived.values())}

    @property
    def called(self) -> set[str]:
        """The orders that the calls are about."""
        return {id_ for call in self.calls for given in call.values() for id_ in orders_of(given)}


def _change(stated: dict[str, Any]) -> dict[str, Any]:
    """The values that each field of an order has afterwards, amounts as they are compared."""
    change = {field: [each] if isinstance(each, str) else each for field, each in stated.items()}
    if refunds := change.get("refunds"):
        stated_amounts = (each.split() for each in refunds)
        change["refunds"] = [Money(Decimal(n), currency).written for n, currency in stated_amounts]
    return change


class Case(Model):
    """One conversation. `name` is the folder and the file, such as `core/two-orders`.

    writes: all that the shop holds differently at the end, by order and field. breaks: which
    responses of the model break off in mid-stream, counted from 1.
    """

    name: str
    description: str
    customer: str
    language: str = "en"
    faults: dict[str, Fault] = {}
    breaks: tuple[int, ...] = ()
    turns: tuple[Turn, ...]
    writes: dict[str, Annotated[dict[str, tuple[str, ...]], BeforeValidator(_change)]] = {}


def orders_of(arguments: Any) -> list[str]:
    """The orders that a call's arguments name, in the spelling of the shop."""
    if not isinstance(arguments, dict):
        return []
    several = arguments.get("order_ids")
    named = [arguments.get("order_id"), *(several if isinstance(several, list) else ())]
    return [_normal(each) for each in named if isinstance(each, str)]


def _normal(order_id: str) -> str:
    try:
        return normalise_order_id(order_id)
    except ValueError:
        return order_id
