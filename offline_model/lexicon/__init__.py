"""The words of a language, read once from its file."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FIRST_MARK = 0xE000  # characters of private use stand for ids in a sentence
ID = "[\ue000-\uf8ff]"


@dataclass(frozen=True)
class Topic:
    """Something one may want to know of an order, the tool that tells it, and its facets.

    `general` topics are about no order. `answers` names the fields that a facet is answered by,
    `also` another topic that a facet asks about as well.
    """

    name: str
    tool: str
    facets: dict[str, list[str]]
    weak: Sequence[str] = ()
    general: bool = False
    answers: dict[str, list[str]] = field(default_factory=dict)
    also: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """What a phrase means: its kind (topic, weak, it, scope, …) and which of that kind."""

    kind: str
    name: str = ""
    facet: str = ""


@dataclass(frozen=True)
class Hit:
    """A mark found in a sentence, from character `start` to `end`."""

    mark: Mark
    start: int
    end: int


Marks = Sequence[tuple[Mark, re.Pattern[str]]]


class Lexicon:
    """One language. `data` is its file as it stands, `known` every word in it that it listens for;
    what is looked up often is prepared here."""

    def __init__(self, text: str) -> None:
        self.data = data = tomllib.loads(text)
        self.locale: str = data["locale"]
        self.says: dict[str, list[str]] = data["says"]
        self.ids = {name: frozenset(words) for name, words in data["ids"].items()}
        self.topics = {entry["name"]: Topic(**entry) for entry in data["topic"]}
        self.requests: dict[str, str] = {entry["name"]: entry["tool"] for entry in data["request"]}
        phrases = re.sub("(?m)^#.*", "", text.partition("[says]")[0])
        self.known = frozenset(re.findall(r"[^\W\d_]+", phrases))
        self.rewrites = [
            (re.compile(rf"(?<!\S){_with_ids(pattern)}"), replacement)
            for pattern, replacement in data["words"]["rewrites"]
        ]
        self.exclusions, self.slips, self.lists = _id_patterns(data["ids"], data["words"]["adding"])
        self.complaints = phrase_pattern(data["refer"]["complaint"])
        self._marks: Marks = [(mark, phrase_pattern(phrases)) for mark, phrases in _phrases(data)]

    def hits(self, sentence: str, more: Marks = (), without: Sequence[str] = ()) -> list[Hit]:
        """The marks in a sentence of plain words, the longer phrase where two overlap.

        `more` are marks that the request brings; among equals its topics come first, its weak
        words last. Marks named in `without` are not looked for.
        """
        first = [pair for pair in more if pair[0].kind != "weak"]
        last = [pair for pair in more if pair[0].kind == "weak"]
        found = [
            Hit(mark, match.start(), match.end())
            for mark, pattern in (*first, *self._marks, *last)
            if mark.name not in without
            for match in pattern.finditer(sentence + " ")
        ]
        kept: list[Hit] = []
        for hit in sorted(found, key=lambda hit: (hit.start - hit.end, hit.start)):
            if all(hit.end <= other.start or hit.start >= other.end for other in kept):
                kept.append(hit)
        return sorted(kept, key=lambda hit: hit.start)

    def words_of(self, topic: str, facets: Iterable[str]) -> set[str]:
        """The words of some facets of a topic (of all, if none is named) and its weak ones, to
        find the tool of another shop that is about it."""
        about = self.topics[topic]
        asked = list(facets) or about.facets
        phrases = [phrase for facet in asked for phrase in about.facets.get(facet, ())]
        return set(re.findall(r"[^\W\d_]{4,}", " ".join([*phrases, *about.weak])))


@cache
def english() -> Lexicon:
    """The English lexicon."""
    return Lexicon(Path(__file__).with_name("en.toml").read_text(encoding="utf-8"))


def phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Whole words; the longest phrase is tried first."""
    ordered = "|".join(sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\S)(?:{_with_ids(ordered)})(?!\S)")


def _with_ids(pattern: str) -> str:
    return pattern.replace("##", f"{ID}{{2,}}").replace("#", f"{ID}+")


def _id_patterns(ids: dict[str, list[str]], adding: list[str]) -> tuple[re.Pattern[str], ...]:
    """Ids to leave out, ids taken back ("A-17, sorry, B-21"), and the joints inside of lists."""
    excluding, slips, joints, between, last = (
        "|".join(sorted(map(str, words), key=len, reverse=True))
        for words in (
            ids["excluding"],
            [*ids["corrections"], *ids["correction_words"], "[,.;:-]"],
            [*ids["connectors"], "[,;/-]"],
            ids["determiners"],
            adding,
        )
    )
    glue = rf"(?:(?: (?:{joints}))+(?: (?:{between}))*)?"
    return (
        re.compile(
            rf"(?<!\S)(?:{excluding}) (?P<ids>{ID}(?:(?: , {ID})*(?: ,)? (?:{last}) {ID})?)"
        ),
        re.compile(rf"{ID}(?P<between>(?: (?:{slips}))+) (?={ID})"),
        re.compile(rf"(?<={ID})(?: 's{glue} (?={ID} 's)|(?: 's)?{glue} (?={ID}(?! 's)))"),
    )


def _phrases(data: dict[str, Any]) -> Iterator[tuple[Mark, list[str]]]:
    for entry in data["request"]:
        yield Mark("request", entry["name"]), entry["phrases"]
    for kind in ("compare", "scope", "ordinal", "beside", "talk"):
        for name, phrases in data[kind].items():
            yield Mark(kind, name), phrases
    for entry in data["topic"]:
        for facet, phrases in entry["facets"].items():
            yield Mark("topic", entry["name"], facet), phrases
        if "weak" in entry:
            yield Mark("weak", entry["name"]), entry["weak"]
    for kind, phrases in data["refer"].items():
        if kind != "complaint":  # a tone: it takes no word away from what is asked
            yield Mark(kind), phrases


english()  # read at import: a file must not be read inside a running event loop
