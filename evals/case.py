"""A case in Python: what one of the files in `cases/` says, once it was found good."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

FaultKind = Literal["timeout", "error"]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fault(Model):
    """delay: seconds until the shop answers. wrong_subject: the order it answers about instead."""

    kind: FaultKind | None = None
    delay: float = 0
    wrong_subject: str | None = None


class Derived(Model):
    """Each holds the orders that something follows from: a sum, the first or last to arrive."""

    sum: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @property
    def order_ids(self) -> set[str]:
        return {*self.sum, *self.first, *self.last}


class Turn(Model):
    """What the customer asks, and what must be true of the answer (see `schema.json`)."""

    ask: str
    calls: tuple[dict[str, dict[str, Any]], ...]
    rounds: int | None = None
    facts: dict[str, tuple[str, ...]] = {}
    failures: dict[str, str] = {}
    derived: Derived = Derived()
    policy: str | None = None
    forbidden: tuple[str, ...] = ()

    @property
    def order_ids(self) -> set[str]:
        """The orders that the answer may speak of."""
        return {*self.facts, *self.failures, *self.derived.order_ids}


class Case(Model):
    """One conversation. `name` is the folder and the file, such as `core/two-orders`."""

    name: str
    description: str
    customer: str
    language: str = "en"
    faults: dict[str, Fault] = {}
    turns: tuple[Turn, ...]
