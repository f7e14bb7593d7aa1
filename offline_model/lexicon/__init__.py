"""The words of a language, read once from its file."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Topic:
    """Something one may want to know of an order, the tool that tells it, and its facets.

    `general` topics are about no order. `answers` names the fields that a facet is answered by.
    """

    name: str
    tool: str
    general: bool
    answers: dict[str, list[str]]


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


class Lexicon:
    """One language. `data` is its file as it stands; what is looked up often is prepared here."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.locale: str = data["locale"]
        self.says: dict[str, str] = data["says"]
        self.ids = {name: frozenset(words) for name, words in data["ids"].items()}
        self.topics = {entry["name"]: _topic(entry) for entry in data["topic"]}
        self.requests: dict[str, str] = {entry["name"]: entry["tool"] for entry in data["request"]}
        self._patterns = [(mark, _pattern(phrases)) for mark, phrases in _phrases(data)]

    @cached_property
    def known(self) -> frozenset[str]:
        """Every word of the file: what is not among them is a subject that it knows nothing of."""
        texts = [*_strings({name: self.data[name] for name in self.data if name != "says"})]
        return frozenset(word for text in texts for word in re.findall(r"[^\W\d_]+", text))

    @cached_property
    def typo_targets(self) -> dict[str, list[str]]:
        """Words that a misspelt one may stand for, by first letter."""
        targets: dict[str, list[str]] = {}
        for entry in self.data["topic"]:
            for word in _plain_words(entry["facets"]) | set(self.ids["nouns"]):
                targets.setdefault(word[0], []).append(word)
        return targets

    def hits(
        self,
        sentence: str,
        more: Sequence[tuple[Mark, re.Pattern[str]]] = (),
        without: Sequence[str] = (),
    ) -> list[Hit]:
        """The marks in a sentence of plain words, the longer phrase where two overlap.

        `more` are marks that the request brings; among equals its topics come first, its weak
        words last. Marks named in `without` are not looked for.
        """
        first = [pair for pair in more if pair[0].kind != "weak"]
        last = [pair for pair in more if pair[0].kind == "weak"]
        found = [
            Hit(mark, match.start(), match.end())
            for mark, pattern in (*first, *self._patterns, *last)
            if mark.name not in without
            for match in pattern.finditer(sentence + " ")
        ]
        kept: list[Hit] = []
        for hit in sorted(found, key=lambda hit: (hit.start - hit.end, hit.start)):
            if all(hit.end <= other.start or hit.start >= other.end for other in kept):
                kept.append(hit)
        return sorted(kept, key=lambda hit: hit.start)

    def words_of(self, topic: str, facets: Iterable[str]) -> set[str]:
        """The plain words of some facets of a topic (of all, if none is named) and its weak ones,
        to find the tool of another shop that is about it."""
        entry = next(entry for entry in self.data["topic"] if entry["name"] == topic)
        asked = list(facets) or list(entry["facets"])
        chosen = {facet: entry["facets"][facet] for facet in asked}
        return _plain_words({**chosen, "weak": entry.get("weak", [])})


@cache
def english() -> Lexicon:
    """The English lexicon."""
    return Lexicon(tomllib.loads((FOLDER / "en.toml").read_text(encoding="utf-8")))


def phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Whole words; the longest phrase is tried first."""
    return _pattern(list(phrases))


def _pattern(phrases: list[str]) -> re.Pattern[str]:
    ordered = "|".join(sorted(phrases, key=len, reverse=True))
    ids = re.sub("#+", lambda marks: "##" if marks[0] == "##" else "##?", ordered)
    return re.compile(rf"(?<!\S)(?:{ids})(?!\S)")


def _topic(entry: dict[str, Any]) -> Topic:
    return Topic(
        entry["name"], entry["tool"], entry.get("general", False), entry.get("answers", {})
    )


def _phrases(data: dict[str, Any]) -> Iterator[tuple[Mark, list[str]]]:
    for entry in data["request"]:
        yield Mark("request", entry["name"]), entry["phrases"]
    for name, phrases in data["compare"].items():
        yield Mark("compare", name), phrases
    for name, phrases in data["scope"].items():
        yield Mark("scope", name), phrases
    for entry in data["topic"]:
        for facet, phrases in entry["facets"].items():
            yield Mark("topic", entry["name"], facet), phrases
        if "weak" in entry:
            yield Mark("weak", entry["name"]), entry["weak"]
    for kind, phrases in data["refer"].items():
        if kind != "ordinals":
            yield Mark(kind), phrases
    for number, phrases in data["refer"]["ordinals"].items():
        yield Mark("ordinal", number), phrases
    for name, phrases in data["talk"].items():
        yield Mark("talk", name), phrases
    yield Mark("follow"), data["words"]["follow_ups"]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _plain_words(facets: dict[str, list[str]]) -> set[str]:
    """The phrases of one word, with their endings spelled out where they are simple."""
    words: set[str] = set()
    for phrase in (phrase for phrases in facets.values() for phrase in phrases):
        words.update(_spelled(phrase) if " " not in phrase.split("(")[0] else ())
    return {word for word in words if len(word) >= 5}


def _spelled(phrase: str) -> Iterator[str]:
    match = re.fullmatch(r"([a-z]+)(?:\(([a-z|]+)\)(\?)?)?(s\?)?", phrase)
    if not match:
        return
    stem, endings, optional, plural = match.groups()
    ends = [*(endings or "").split("|"), *([""] if optional else [])] if endings else [""]
    for end in ends:
        yield stem + end
        if plural:
            yield stem + end + "s"


english()  # read at import: a file must not be read inside a running event loop
