"""What a request comes down to, whichever protocol it came in."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Arguments of a write in words of their own; any other text of a call may name an order.
WORDS = frozenset({"reason", "address", "summary", "amount", "currency"})
NO_ORDER = WORDS | {"topic"}
Wanted = tuple[str, dict[str, Any]]  # a call to make: the name of its tool, its arguments


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: dict[str, Any]

    @classmethod
    def of(cls, told: dict[str, Any]) -> "Tool":
        """A function as either protocol describes it."""
        return cls(told["name"], told.get("description") or "", told.get("parameters") or {})


@dataclass
class Call:
    """A tool call of the history; `output` is its result as text, None while it is open."""

    call_id: str
    name: str
    arguments: str
    output: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        return _object(self.arguments)

    @property
    def data(self) -> dict[str, Any] | None:
        """The data of an ok result, None for anything else."""
        return self._part("ok", "data")

    @property
    def error(self) -> dict[str, Any] | None:
        """The error of a failed result, as kind and message."""
        return self._part("error", "error")

    @property
    def subjects(self) -> list[str]:
        """The arguments that may name orders."""
        named = [value for name, value in self.given.items() if name not in NO_ORDER]
        listed = [value if isinstance(value, list) else [value] for value in named]
        return [one for each in listed for one in each if isinstance(one, str)]

    def _part(self, status: str, name: str) -> dict[str, Any] | None:
        result = _object(self.output or "")
        part = result.get(name)
        return part if result.get("status") == status and isinstance(part, dict) else None


@dataclass
class Turn:
    """One message of the customer and what came of it so far."""

    text: str
    calls: list[Call] = field(default_factory=list)


@dataclass(frozen=True)
class Conversation:
    """The whole request: the last turn is the one to answer.

    `schema` is the JSON schema of the final message, None where prose is wanted. `choice` is
    "auto", "none", "required" or the name of the tool that must be called.
    """

    instructions: str
    tools: tuple[Tool, ...]
    turns: tuple[Turn, ...]
    schema: dict[str, Any] | None = None
    choice: str = "auto"
    parallel: bool = True

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


class Asked(NamedTuple):
    """A call to make; without an id of its own it is given one as the API gives them."""

    name: str
    arguments: dict[str, Any]
    call_id: str = ""


@dataclass(frozen=True)
class Step:
    """What the model does next: calls, or else its final text."""

    calls: tuple[Asked, ...] = ()
    text: str = ""


Think = Callable[[Conversation], Step]


def rows(data: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The entries of a result that is a listing: objects in a list at its top level."""
    for value in (data or {}).values():
        if isinstance(value, list):
            yield from (entry for entry in value if isinstance(entry, dict))


def key(name: str, arguments: dict[str, Any]) -> str:
    """The same for the same call."""
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
