"""An answer as its reader takes it: which part speaks of which order, and the facts in it."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from evals.forms import forms, plain
from evals.truth import Money, Truth, Value
from evals.words import LETTER, any_of, words

NUMBER = re.compile(r"(?:(?<!\S)-)?\d+(?:[.,:/-]\d+)*")
CLAUSE = re.compile(r"[;:.。;,,()]| and | и | y |和")
MENTION = f"(?<!{LETTER})(?<!{LETTER}-){{}}(?!{LETTER})(?!-{LETTER})"


class Meaning(NamedTuple):
    """What a fact in an answer may stand for: one value of one field of one order."""

    order_id: str
    field: str
    place: int


@dataclass(frozen=True)
class Fact:
    """A value that stands in an answer. Without a meaning it is no order's: it was invented."""

    text: str
    meanings: frozenset[Meaning]

    @property
    def owners(self) -> set[str]:
        return {meaning.order_id for meaning in self.meanings}


@dataclass(frozen=True)
class Part:
    """What is said of one order at one place; of none where `order_id` is None."""

    order_id: str | None
    text: str
    facts: tuple[Fact, ...]


class _Span(NamedTuple):
    start: int
    end: int
    mention: str | None = None
    fact: Fact | None = None


@dataclass(frozen=True)
class Reading:
    """An answer, and what it is read with.

    order_ids: those that it may speak of. quoted: texts that may stand in it word for word, such
    as what the customer said, the shop's policy or a derived value; nothing in them is a fact.
    deeds: whether it may say that a change was not made, which denies no status.
    """

    message: str
    truth: Truth
    language: str
    order_ids: Collection[str]
    quoted: Collection[str] = ()
    deeds: bool = False

    @cached_property
    def text(self) -> str:
        return plain(self.message)

    @cached_property
    def words(self) -> str:
        """What is left of the text without ids and values."""
        return _without(self.text, [span for span in self._spans if span.fact or span.mention])

    def of(self, order_id: str) -> list[Part]:
        return [part for part in self.parts if part.order_id == order_id]

    @cached_property
    def parts(self) -> list[Part]:
        """Line by line: a line speaks of the ids in it, else of what the line before spoke of."""
        parts: list[Part] = []
        about: str | None = None
        start = 0
        for line in self.text.splitlines(keepends=True):
            end = start + len(line)
            here = [span for span in self._spans if start <= span.start < end]
            mentions = [span for span in here if span.mention]
            cuts = [start, *self._borders(mentions), end]
            owners = [mention.mention for mention in mentions] or [about]
            for about, (begin, stop) in zip(owners, pairwise(cuts), strict=True):
                facts = tuple(
                    each.fact for each in here if each.fact and begin <= each.start < stop
                )
                parts.append(Part(about, self.text[begin:stop], facts))
            start = end
        return parts

    def _borders(self, mentions: list[_Span]) -> Iterator[int]:
        """Where the clause of each further mention begins: after the last mark, or at itself."""
        unvalued = _without(self.text, [span for span in self._spans if span.fact])
        for before, mention in pairwise(mentions):
            marks = list(CLAUSE.finditer(unvalued, before.end, mention.start))
            yield marks[-1].end() if marks else mention.start

    @cached_property
    def _spans(self) -> list[_Span]:
        """Ids, values and quotations from left to right, the longest first where they overlap."""
        found = [*self._quotations(), *self._values(), *self._statuses(), *self._mentions()]
        spans: list[_Span] = []
        for span in sorted(found, key=lambda span: (span.start, -span.end)):
            if not spans or span.start >= spans[-1].end:
                spans.append(span)
        return sorted([*spans, *self._numbers(_without(self.text, spans))])

    def _values(self) -> Iterator[_Span]:
        here, known = self.text.lower(), _forms(self.truth, self.language)
        for form in (form for form in known if form in here):
            for match in _of(form).finditer(self.text):
                yield _Span(*match.span(), fact=Fact(match[0], frozenset(known[form])))

    def _statuses(self) -> Iterator[_Span]:
        said = words(self.language)
        everyone = [(m, value) for m, value in _all_values(self.truth) if m.field == "status"]
        for status, pattern in said.statuses.items():
            for match in pattern.finditer(self.text):
                if denied := said.negation.search(self.text[: match.start()]):
                    no_ones = Fact(denied[0] + match[0], frozenset())
                    yield _Span(denied.start(), match.end(), fact=no_ones)
                meant = frozenset(meaning for meaning, value in everyone if value == status)
                yield _Span(*match.span(), fact=Fact(match[0], meant))

    def _mentions(self) -> Iterator[_Span]:
        # "A" is an article too: a single letter counts only where the case speaks of that order.
        ids = {order_id for order_id in self.truth.orders if len(order_id) > 1}
        for order_id in ids | set(self.order_ids):
            for match in re.finditer(MENTION.format(re.escape(plain(order_id))), self.text):
                yield _Span(*match.span(), mention=order_id)

    def _quotations(self) -> Iterator[_Span]:
        said = words(self.language)
        shown = [plain(each) for each in (*self.quoted, *said.idle)]
        patterns = [any_of(filter(None, shown)), *[said.deeds["not_done"]] * self.deeds]
        for match in (match for pattern in patterns for match in pattern.finditer(self.text)):
            yield _Span(*match.span())

    def _numbers(self, rest: str) -> Iterator[_Span]:
        whole: dict[str, set[Meaning]] = defaultdict(set)
        for meaning, value in _all_values(self.truth):
            if isinstance(value, int):
                whole[str(value)].add(meaning)
        for match in NUMBER.finditer(rest):
            fact = Fact(match[0], frozenset(whole[match[0]]))
            if unit := words(self.language).units.match(rest, match.end()):
                fact = Fact(match[0] + unit[0], frozenset())  # it is no number of days, nor pieces
            yield _Span(*match.span(), fact=fact)


@lru_cache(maxsize=8)
def _forms(truth: Truth, language: str) -> dict[str, set[Meaning]]:
    meanings: dict[str, set[Meaning]] = defaultdict(set)
    for meaning, value in _all_values(truth):
        if isinstance(value, str | date | Money) and meaning.field != "status":
            for form in forms(value, language):
                meanings[form].add(meaning)
    return dict(meanings)


@cache
def _of(form: str) -> re.Pattern[str]:
    return any_of([form])


def _all_values(truth: Truth) -> Iterator[tuple[Meaning, Value]]:
    for order_id, order in truth.orders.items():
        for field, values in order.values.items():
            for place, value in enumerate(values):
                yield Meaning(order_id, field, place), value


def _without(text: str, spans: Iterable[_Span]) -> str:
    for span in spans:
        text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    return text
