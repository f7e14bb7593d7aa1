"""An answer as its reader takes it: which part speaks of which order, and the facts in it."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from evals.forms import forms, plain
from evals.truth import Money, Truth, Value
from evals.words import LETTER, any_of, words

NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
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


@dataclass(frozen=True)
class Vocabulary:
    """What an answer is read with.

    order_ids: those that it may speak of. quoted: texts that may stand in it word for word, such
    as what the customer said, the shop's policy or a derived value; nothing in them is a fact.
    """

    truth: Truth
    language: str
    order_ids: Collection[str]
    quoted: Collection[str] = ()


class _Span(NamedTuple):
    start: int
    end: int
    mention: str = ""
    fact: Fact | None = None


class Reading:
    """`parts`: the answer in its order. `words`: what is left of it without ids and values."""

    def __init__(self, message: str, vocabulary: Vocabulary) -> None:
        self.text = plain(message)
        spans = _spans(self.text, vocabulary)
        self.parts = list(_parts(self.text, spans))
        self.words = _without(self.text, [span for span in spans if span.fact or span.mention])

    def of(self, order_id: str) -> list[Part]:
        return [part for part in self.parts if part.order_id == order_id]


def _spans(text: str, vocabulary: Vocabulary) -> list[_Span]:
    """Ids, values and quotations from left to right, the longest first where they overlap."""
    known = [*_values(text, vocabulary), *_statuses(text, vocabulary), *_mentions(text, vocabulary)]
    spans = _apart([*_quoted(text, vocabulary.quoted), *known])
    numbers = _numbers(_without(text, spans), vocabulary.truth)
    return sorted([*spans, *numbers])


def _apart(spans: Iterable[_Span]) -> list[_Span]:
    apart: list[_Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart


def _values(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    here = text.lower()
    meanings: dict[str, set[Meaning]] = defaultdict(set)
    for meaning, value in _all_values(vocabulary.truth):
        if isinstance(value, str | date | Money) and meaning.field != "status":
            for form in forms(value, vocabulary.language):
                if form in here:
                    meanings[form].add(meaning)
    if meanings:
        for match in any_of(meanings).finditer(text):
            fact = Fact(match[0], frozenset(meanings[match[0].lower()]))
            yield _Span(match.start(), match.end(), fact=fact)


def _statuses(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    said = words(vocabulary.language)
    everyone = [(m, value) for m, value in _all_values(vocabulary.truth) if m.field == "status"]
    for status, pattern in said.statuses.items():
        for match in pattern.finditer(text):
            if denied := said.negation.search(text[: match.start()]):
                yield _Span(
                    denied.start(), match.end(), fact=Fact(denied[0] + match[0], frozenset())
                )
            meant = frozenset(meaning for meaning, value in everyone if value == status)
            yield _Span(match.start(), match.end(), fact=Fact(match[0], meant))


def _mentions(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    # "A" is an article too: a single letter counts only where the case speaks of that order.
    ids = {order_id for order_id in vocabulary.truth.orders if len(order_id) > 1}
    for order_id in ids | set(vocabulary.order_ids):
        for match in re.finditer(MENTION.format(re.escape(plain(order_id))), text):
            yield _Span(match.start(), match.end(), mention=order_id)


def _quoted(text: str, quoted: Collection[str]) -> Iterator[_Span]:
    shown = [plain(text) for text in quoted if plain(text)]
    if shown:
        yield from (_Span(match.start(), match.end()) for match in any_of(shown).finditer(text))


def _numbers(rest: str, truth: Truth) -> Iterator[_Span]:
    whole: dict[str, set[Meaning]] = defaultdict(set)
    for meaning, value in _all_values(truth):
        if isinstance(value, int):
            whole[str(value)].add(meaning)
    for match in NUMBER.finditer(rest):
        fact = Fact(match[0], frozenset(whole[match[0]]))
        yield _Span(match.start(), match.end(), fact=fact)


def _all_values(truth: Truth) -> Iterator[tuple[Meaning, Value]]:
    for order_id, order in truth.orders.items():
        for field, values in order.values.items():
            for place, value in enumerate(values):
                yield Meaning(order_id, field, place), value


def _parts(text: str, spans: list[_Span]) -> Iterator[Part]:
    """Line by line: a line speaks of the ids in it, else of what the line before spoke of."""
    about: str | None = None
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        mentions = [span for span in spans if span.mention and start <= span.start < end]
        cuts = [start, *(mention.start for mention in mentions[1:]), end]
        owners: list[str | None] = [mention.mention for mention in mentions]
        owners = owners or [about]
        for owner, (begin, stop) in zip(owners, pairwise(cuts), strict=True):
            facts = tuple(span.fact for span in spans if span.fact and begin <= span.start < stop)
            yield Part(owner, text[begin:stop], facts)
        about, start = owners[-1], end


def _without(text: str, spans: Iterable[_Span]) -> str:
    characters = list(text)
    for span in spans:
        characters[span.start : span.end] = " " * (span.end - span.start)
    return "".join(characters)
