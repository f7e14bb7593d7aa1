"""Who must confirm or approve a write, as `actions.toml` beside this module says.

rules = action_rules(tools)                        # raises BadDeclaration
if rules["request_refund"].asks_customer: …
if approval := rules["request_refund"].approval({"amount": Decimal(150), "currency": "USD"}): …
"""

import tomllib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tools.policy import unusable
from tools.tool import Tool

FILE = Path(__file__).parent / "actions.toml"


class _Section(BaseModel):
    """A misspelt setting would open what it was to guard: unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Approval(_Section):
    """A member of staff with this role decides, above the amount of each currency."""

    role: Annotated[str, Field(min_length=1)]
    hours: Annotated[float, Field(gt=0, le=87_600, allow_inf_nan=False)]
    above: dict[str, Annotated[Decimal, Field(ge=0)]] | None = None

    @property
    def waits(self) -> timedelta:
        return timedelta(hours=self.hours)

    def concerns(self, arguments: Mapping[str, Any]) -> bool:
        if self.above is None:
            return True
        limit = self.above.get(arguments["currency"], Decimal(0))
        return bool(arguments["amount"] > limit)


class ActionRule(_Section):
    """Who must say yes to one tool's writes."""

    confirm: Literal["customer", "nobody"]
    approve: Approval | None = None

    @property
    def asks_customer(self) -> bool:
        return self.confirm == "customer"

    def approval(self, arguments: Mapping[str, Any]) -> Approval | None:
        """The approval that a call with these checked arguments needs."""
        return self.approve if self.approve and self.approve.concerns(arguments) else None


_RULES: TypeAdapter[dict[str, ActionRule]] = TypeAdapter(dict[str, ActionRule])


def action_rules(tools: Iterable[Tool], file: Path = FILE) -> Mapping[str, ActionRule]:
    """The rule of each write tool among these.

    Raises BadDeclaration, with a sentence, for a file that cannot be read, a write tool without a
    rule, a rule for an unknown tool, and an amount that a tool does not have.
    """
    writes = {tool.name: tool for tool in tools if tool.writes}
    rules = _read(file)
    if unknown := sorted(rules.keys() - writes.keys()):
        raise unusable(file, f"there is no write tool {unknown[0]!r}")
    if unruled := sorted(writes.keys() - rules.keys()):
        raise unusable(file, f"the write tool {unruled[0]!r} has no section")
    for name, rule in rules.items():
        by_amount = rule.approve and rule.approve.above is not None
        if by_amount and not {"amount", "currency"} <= set(writes[name].parameters["properties"]):
            raise unusable(file, f"{name!r} takes no amount and currency to compare with `above`")
    return rules


def _read(file: Path) -> Mapping[str, ActionRule]:
    try:
        return _RULES.validate_python(tomllib.loads(file.read_text("utf-8")))
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_input=False)
        where = ".".join(map(str, first["loc"]))
        raise unusable(file, f"{where}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise unusable(file, f"it cannot be read ({type(error).__name__})") from None
