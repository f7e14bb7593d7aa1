"""Repairs a history with real results only: no value and no id of it is ever made up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.history.findings import Examination, Placed
from agent.history.kinds import Finding
from agent.history.model import Part, Raw
from agent.history.readers import RESULT_ID
from agent.history.writers import grouped, result_of

Known = Callable[[Part], Any]  # the real result of a call; raises KeyError where it is not known

APART = ("text_between", "results_spread", "result_before_call", "item_id_as_call_id")


@dataclass(frozen=True)
class Repaired:
    """document: the history as it is now. done: what was repaired. left: what is still wrong.

    unused: ids of the given results that no call needed.
    """

    document: Any
    done: list[Finding]
    left: list[Finding]
    unused: list[str]


@dataclass
class Mending:
    """What is taken out and what is put in; done names it by kind and path."""

    examined: Examination
    done: set[tuple[str, str]] = field(default_factory=set)
    _filled: dict[Placed, Raw] = field(default_factory=dict)  # real results
    _out: set[int] = field(default_factory=set)  # parts, as objects
    _behind: dict[int, list[Raw]] = field(default_factory=dict)  # results, by the place before

    def __post_init__(self) -> None:
        again = [each for each in self.examined.results if each.wrong == "duplicate_result"]
        self._disputed = {each.mate for each in again if not _is_same(each)}

    def is_open(self, call: Placed) -> bool:
        """Whether it has no result, or some that differ."""
        return not call.mate or call in self._disputed

    def needs(self, call: Placed) -> bool:
        """Whether a real result of ours would mend it."""
        ours = call.part.id and call.part.form in ("function", "custom") and not call.ambiguous
        return bool(ours and self.is_open(call) and not self.examined.waits(call))

    def fill(self, call: Placed, value: Any) -> None:
        self._filled[call] = result_of(self.examined.history.protocol, call.part, value)
        self.done.add(("missing_result", call.part.path))

    def document(self) -> Any:
        """The document with all of it done; the very same where nothing is to do."""
        history, calls = self.examined.history, self.examined.calls
        for result in self.examined.results:
            agrees = result.wrong == "duplicate_result" and result.mate not in self._disputed
            if agrees or result.mate in self._filled or result.wrong == "orphan_result":
                self._take_out(result)
        moved = {call.response for call in calls if call.mate and call.mate.wrong in APART}
        touched = moved | {call.response for call in self._filled}
        for call in calls:
            if call.response and call.response in touched:
                self._put(call, call.response.last)
        if not self._out and not self._behind:
            return history.document
        messages = list(self._written())
        return {**history.document, history.key: messages} if history.key else messages

    def _take_out(self, result: Placed) -> None:
        self._out.add(id(result.part))
        self.done.add((result.wrong, result.part.path))

    def _put(self, call: Placed, last: int) -> None:
        """A call's result behind its response, with those of its siblings in their order."""
        raw = self._filled.get(call)
        if raw is None and call.mate:
            self._take_out(call.mate)
            raw, name = call.mate.part.raw, RESULT_ID[self.examined.history.protocol]
            raw = raw if call.mate.part.id == call.part.id else {**raw, name: call.part.id}
        if raw:
            self._behind.setdefault(last, []).append(raw)

    def _written(self) -> Iterator[Raw]:
        """Messages with nothing to do stay as they are."""
        protocol, waiting = self.examined.history.protocol, list[Raw]()
        for place, message in enumerate(self.examined.history.messages):
            kept = [part.raw for part in message.parts if id(part) not in self._out]
            if len(kept) == len(message.parts):
                yield from (*grouped(protocol, waiting), message.raw)
            else:
                yield from grouped(protocol, [*waiting, *kept], message.raw)
            waiting = self._behind.get(place, [])
        yield from grouped(protocol, waiting)


def _is_same(result: Placed) -> bool:
    """Whether another result of a call says what the first one says."""
    first = result.mate.mate if result.mate else None
    said = [{**each.part.raw, "id": None} for each in (result, first or result)]
    return said[0] == said[1]
