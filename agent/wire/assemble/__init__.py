"""What a stream of events says, put together again: one assembler a protocol, and no I/O.

Each module holds an `Assembler`, `check(body)` with the same rules for a body that came whole, and
`events(body)`, which tells a whole body as a stream: item after item, each call in one piece.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
Body = dict[str, Any]
OnNamed = Callable[[str, str], None]  # call id, tool

WRONG_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)
OTHER_FORM = "It does not have the form of its protocol."


class StreamInterrupted(Exception):
    """A response that did not come to its end as completed, or contradicts itself.

    Nothing of it may be used, and the message holds none of its values. usage: what the vendor had
    said of tokens by then, in its own words.
    """

    usage: Any = None


class NoEvents(StreamInterrupted):
    """A server that was asked for a stream answered with something else."""


@dataclass
class Call:
    """The buffer of one call: pieces of its arguments, until it is done. wrong: what is."""

    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    done: bool = False
    wrong: str = ""
    told: bool = False

    @property
    def text(self) -> str:
        return joined(self.pieces)

    @property
    def broke(self) -> str | None:
        """Where it was not finished; None where it was."""
        if self.done:
            return None
        return self.wrong or f"after {len(self.text)} characters of its arguments"


class Assembler(ABC):
    """Takes the events of one response, as they come, and gives its body when it is complete.

    calls: as far as they came. ended: nothing that matters comes any more. usage: as it was told
    last. Every method raises StreamInterrupted.
    """

    def __init__(self, on_named: OnNamed = lambda call_id, name: None) -> None:
        self.calls: list[Call] = []
        self.ended = False
        self.usage: Any = None
        self._on_named = on_named

    def take(self, event: Any) -> None:
        """The next event, parsed."""
        try:
            self._take(event)
        except WRONG_FORM:
            raise StreamInterrupted(OTHER_FORM) from None

    def whole(self) -> Body:
        """The response's body, as the API would have sent it without streaming."""
        try:
            return self._whole()
        except WRONG_FORM:
            raise StreamInterrupted(OTHER_FORM) from None

    @abstractmethod
    def _take(self, event: Event) -> None: ...

    @abstractmethod
    def _whole(self) -> Body: ...

    def _broken(self, call: Call, why: str) -> StreamInterrupted:
        call.done, call.wrong = False, why
        return StreamInterrupted(f"A call contradicts itself: {why}.")

    def _named(self, call: Call) -> None:
        """Its name is told before its arguments are there."""
        if call.call_id and call.name and not call.told:
            call.told = True
            self._on_named(call.call_id, call.name)


def joined(pieces: Iterable[str]) -> str:
    """The pieces as one text, in which a character that was split in half is whole again."""
    text = "".join(pieces)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def word(value: object) -> str:
    """A vendor's code as it may stand in a sentence: its own texts might repeat what was asked."""
    text = str(value)
    return text if text.replace("_", "").isalnum() and len(text) <= 64 else "error"
