"""An answer as its reader takes it: which part speaks of which order, and the facts in it."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
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


@dataclass(frozen=True)
class Vocabulary:
    """What an answer is read with.

    order_ids: those that it may speak of. quoted: texts that may stand in it word for word, such
    as what the customer said, the shop's policy or a derived value; nothing in them is a fact.
    deeds: whether it may say that a change was not made, which denies no status.
    """

    truth: Truth
    language: str
    order_ids: Collection[str]
    quoted: Collection[str] = ()
    deeds: bool = False


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
    kinds = (_quoted, _values, _statuses, _mentions)
    found = [span for kind in kinds for span in kind(text, vocabulary)]
    spans: list[_Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not spans or span.start >= spans[-1].end:
            spans.append(span)
    return sorted([*spans, *_numbers(_without(text, spans), vocabulary)])


def _values(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    here, known = text.lower(), _forms(vocabulary.truth, vocabulary.language)
    for form in (form for form in known if form in here):
        for match in _of(form).finditer(text):
            yield _Span(match.start(), match.end(), fact=Fact(match[0], frozenset(known[form])))


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


def _statuses(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    said = words(vocabulary.language)
    everyone = [(m, value) for m, value in _all_values(vocabulary.truth) if m.field == "status"]
    for status, pattern in said.statuses.items():
        for match in pattern.finditer(text):
            if denied := said.negation.search(text[: match.start()]):
                no_ones = Fact(denied[0] + match[0], frozenset())
                yield _Span(denied.start(), match.end(), fact=no_ones)
            meant = frozenset(meaning for meaning, value in everyone if value == status)
            yield _Span(match.start(), match.end(), fact=Fact(match[0], meant))


def _mentions(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    # "A" is an article too: a single letter counts only where the case speaks of that order.
    ids = {order_id for order_id in vocabulary.truth.orders if len(order_id) > 1}
    for order_id in ids | set(vocabulary.order_ids):
        for match in re.finditer(MENTION.format(re.escape(plain(order_id))), text):
            yield _Span(match.start(), match.end(), mention=order_id)


def _quoted(text: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    said = words(vocabulary.language)
    shown = [plain(each) for each in (*vocabulary.quoted, *said.idle)]
    patterns = [any_of(filter(None, shown)), *[said.deeds["not_done"]] * vocabulary.deeds]
    for match in (match for pattern in patterns for match in pattern.finditer(text)):
        yield _Span(match.start(), match.end())


def _numbers(rest: str, vocabulary: Vocabulary) -> Iterator[_Span]:
    whole: dict[str, set[Meaning]] = defaultdict(set)
    for meaning, value in _all_values(vocabulary.truth):
        if isinstance(value, int):
            whole[str(value)].add(meaning)
    for match in NUMBER.finditer(rest):
        fact = Fact(match[0], frozenset(whole[match[0]]))
        if unit := words(vocabulary.language).units.match(rest, match.end()):
            fact = Fact(match[0] + unit[0], frozenset())  # it is no number of days, nor of pieces
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
        cuts = [start, *_borders(text, spans, mentions), end]
        owners: list[str | None] = [mention.mention for mention in mentions]
        owners = owners or [about]
        for owner, (begin, stop) in zip(owners, pairwise(cuts), strict=True):
            facts = tuple(span.fact for span in spans if span.fact and begin <= span.start < stop)
            yield Part(owner, text[begin:stop], facts)
        about, start = owners[-1], end


def _borders(text: str, spans: list[_Span], mentions: list[_Span]) -> Iterator[int]:
    """Where the clause of each further mention begins: after the last mark before it, or at it."""
    plain = _without(text, [span for span in spans if span.fact])
    for before, mention in pairwise(mentions):
        marks = list(CLAUSE.finditer(plain, before.end, mention.start))
        yield marks[-1].end() if marks else mention.start


def _without(text: str, spans: Iterable[_Span]) -> str:
    for span in spans:
        text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    return text
