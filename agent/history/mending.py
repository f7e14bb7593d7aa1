"""Repairs a history with real results only: no value and no id of it is ever made up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent.history.findings import Called, Examination, Given
from agent.history.kinds import Finding
from agent.history.model import Part
from agent.history.writers import RESULT_ID, grouped, result_of, within

Known = Callable[[Part], Any]  # the real result of a call; raises KeyError where it is not known
Raw = dict[str, Any]

APART = ("text_between", "results_spread", "result_before_call", "item_id_as_call_id")


@dataclass(frozen=True)
class Repaired:
    """document: the history as it is now. done: what was repaired. left: what is still wrong."""

    document: Any
    done: list[Finding]
    left: list[Finding]


@dataclass
class Mending:
    """What is taken out and what is put in; done names it by kind and path."""

    examined: Examination
    known: Known
    done: set[tuple[str, str]] = field(default_factory=set)
    _out: set[int] = field(default_factory=set)  # parts, as objects
    _behind: dict[int, list[Raw]] = field(default_factory=dict)  # results, by the place before
    _disputed: set[int] = field(default_factory=set)  # calls with several results that differ
    _filled: dict[int, Raw] = field(default_factory=dict)  # by call

    def document(self) -> Any:
        """The document with all of it done; the very same where nothing is to do."""
        again = [each for each in self.examined.results if each.kind == "duplicate_result"]
        self._disputed = {id(each.called) for each in again if not _is_same(each)}
        for called in self.examined.calls:
            self._fill(called)
        for given in self.examined.results:
            self._judge(given)
        touched = {id(called.response) for called in self.examined.calls if self._moves(called)}
        for called in self.examined.calls:
            if id(called.response) in touched:
                self._put(called)
        if not self._out and not self._behind:
            return self.examined.history.document
        return within(self.examined.history, list(self._written()))

    def findings_done(self) -> list[Finding]:
        return [each for each in self.examined.findings if (each.kind, each.path) in self.done]

    def _fill(self, called: Called) -> None:
        settled = called.result and id(called) not in self._disputed
        if settled or called.ambiguous or not called.part.id or self.examined.waits(called):
            return
        try:
            value = self.known(called.part)
        except KeyError:
            return
        protocol = self.examined.history.protocol
        self._filled[id(called)] = result_of(protocol, called.part, value)
        self.done.add(("missing_result", called.part.path))

    def _judge(self, given: Given) -> None:
        """Takes out what belongs to no call, and what the real result takes the place of."""
        has_own = id(given.called) in self._filled
        agrees = given.kind == "duplicate_result" and id(given.called) not in self._disputed
        if has_own or agrees or given.kind == "orphan_result":
            self._take_out(given)

    def _take_out(self, given: Given) -> None:
        self._out.add(id(given.part))
        self.done.add((given.kind, given.part.path))

    def _moves(self, called: Called) -> bool:
        return id(called) in self._filled or bool(called.result and called.result.kind in APART)

    def _put(self, called: Called) -> None:
        """A call's result behind its response, with those of its siblings in their order."""
        raw = self._filled.get(id(called))
        if raw is None and called.result:
            self._take_out(called.result)
            raw = self._under_its_id(called.result.part.raw, called.part.id)
        if raw:
            self._behind.setdefault(called.response.last, []).append(raw)

    def _under_its_id(self, raw: Raw, id_: str) -> Raw:
        name = RESULT_ID[self.examined.history.protocol]
        return raw if raw[name] == id_ else {**raw, name: id_}

    def _written(self) -> Iterator[Raw]:
        """Messages with nothing to do stay as they are."""
        protocol, waiting = self.examined.history.protocol, list[Raw]()
        for place, message in enumerate(self.examined.history.messages):
            kept = [part.raw for part in message.parts if id(part) not in self._out]
            if len(kept) == len(message.parts):
                yield from grouped(protocol, waiting)
                yield message.raw
            else:
                yield from grouped(protocol, [*waiting, *kept], message.raw)
            waiting = self._behind.get(place, [])
        yield from grouped(protocol, waiting)


def _is_same(given: Given) -> bool:
    """Whether another result of a call says what the first one says."""
    first = given.called.result if given.called else None
    said = [{**part.raw, "id": None} for part in (given.part, first.part if first else given.part)]
    return said[0] == said[1]
