"""What a stream of events says, put together again: one assembler a protocol, and no I/O.

Each module holds an `Assembler`, `check(body)` with the same rules for a body that came whole, and
`events(body)`, which tells a whole body as a stream: item after item, each call in one piece.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]
Body = dict[str, Any]
OnNamed = Callable[[str, str], None]  # call id, tool

WRONG_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True)
class Seen:
    """What came of one call. whole: it was finished. broke: where it was not, in words."""

    call_id: str
    name: str
    whole: bool
    broke: str = ""


class StreamInterrupted(Exception):
    """A response that did not come to its end as completed, or contradicts itself.

    Nothing of it may be used. seen: its calls as far as they came; the message holds no values.
    usage: what the vendor had said of tokens by then, in its own words.
    """

    def __init__(self, why: str, seen: Iterable[Seen] = (), usage: Any = None) -> None:
        super().__init__(why)
        self.seen, self.usage = list(seen), usage


class NoEvents(StreamInterrupted):
    """A server that was asked for a stream answered with something else."""


@dataclass
class Call:
    """The buffer of one call: pieces of its arguments, until it is done."""

    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    done: bool = False
    broke: str = ""
    told: bool = False

    @property
    def text(self) -> str:
        return joined(self.pieces)

    @property
    def seen(self) -> Seen:
        broke = self.broke or f"after {len(self.text)} characters of its arguments"
        return Seen(self.call_id, self.name, self.done, "" if self.done else broke)


class Assembler(ABC):
    """Takes the events of one response, as they come, and gives its body when it is complete.

    ended: nothing that matters comes any more. Every method raises StreamInterrupted.
    """

    def __init__(self, on_named: OnNamed = lambda call_id, name: None) -> None:
        self.calls: list[Call] = []
        self.ended = False
        self.usage: Any = None
        self._on_named = on_named

    def take(self, event: Any) -> None:
        """The next event, parsed."""
        with self._reading():
            self._take(event)

    def whole(self) -> Body:
        """The response's body, as the API would have sent it without streaming."""
        with self._reading():
            return self._whole()

    @abstractmethod
    def _take(self, event: Event) -> None: ...

    @abstractmethod
    def _whole(self) -> Body: ...

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except StreamInterrupted as error:
            error.seen, error.usage = error.seen or self.seen, error.usage or self.usage
            raise
        except WRONG_FORM:
            raise self.interrupted("It does not have the form of its protocol.") from None

    def interrupted(self, why: str) -> StreamInterrupted:
        return StreamInterrupted(why, self.seen, self.usage)

    @property
    def seen(self) -> list[Seen]:
        return [call.seen for call in self.calls]

    def _broken(self, call: Call, why: str) -> StreamInterrupted:
        call.done, call.broke = False, why
        return self.interrupted(f"A call contradicts itself: {why}.")

    def _named(self, call: Call) -> None:
        """Its name may be told before its arguments are there."""
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
