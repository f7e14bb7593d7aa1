"""The words of the languages that the offline model reads, each in a file of its own."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

WORD = r"(?<![\w-])[^\W\d_]+(?![\w-])"  # and no part of an id, such as "ES-501"
FIRST_MARK = 0xE000  # characters of private use stand for ids in a sentence
ID = "[\ue000-\uf8ff]"
SPACELESS = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # scripts that put no spaces between words

OWN = ("locale", "says", "writes", "cards")  # what a language does not share with those below it
# What stands for a number beside a currency, whether or not it can be read as an amount.
FIGURE = r"-?\d(?:(?:[\w.,']|-\d)*\w)?(?:\x20\d{3}(?:[.,]\d+)?(?!\w))*"
_PLACE = r"(?:{to})\s*(?P<at>(?!(?:{nowhere})(?!\w)).+?)(?=\s*(?:{end}|{and})|[\s.,!?\"]*$)"
_LINES = re.IGNORECASE | re.MULTILINE


@dataclass(frozen=True)
class Topic:
    """Something one may want to know of an order, the tool that tells it, and its facets.

    `general` topics are about no order. `answers` names the fields that a facet is answered by,
    `also` another topic that a facet asks about as well.
    """

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
    """The words of one language, and below them those of others that people mix with it.

    `data` holds the files as they stand, `known` every word that they listen for; what is looked
    up often is prepared here.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.locale: str = data["locale"]
        self.says: dict[str, list[str]] = data["says"]
        self.ids = {name: frozenset(words) for name, words in data["ids"].items()}
        self.topics = {name: Topic(**entry) for name, entry in data["topic"].items()}
        self.requests = {name: entry["tool"] for name, entry in data["request"].items()}
        self.known: frozenset[str] = frozenset(data["known"])
        self.rewrites = [
            (re.compile(rf"(?<!\S){_regex(pattern)}"), replacement)
            for pattern, replacement in data["words"]["rewrites"]
        ]
        self.exclusions, self.slips, self.lists = _id_patterns(data["ids"], data["words"]["adding"])
        self.complaints = phrase_pattern(data["refer"]["complaint"])
        self.wish = {name: phrase_pattern(phrases) for name, phrases in data["wish"].items()}
        raw = {name: "|".join(patterns) for name, patterns in data["raw"].items()}
        self.places = re.compile(_PLACE.format(**raw), _LINES)
        self.because, self.joint = (re.compile(raw[name], _LINES) for name in ("because", "and"))
        self.coins = _coins(word for words in data["money"].values() for word in words)
        self.money = _money(self.coins)
        self._marks: Marks = [(mark, phrase_pattern(phrases)) for mark, phrases in _phrases(data)]

    def hits(self, sentence: str, more: Marks = (), without: Sequence[str] = ()) -> list[Hit]:
        """The marks in a sentence of plain words, the longer phrase where two overlap.

        `more` are marks that the request brings; among equals its topics come first, its weak
        words last. Marks named in `without` are not looked for.
        """
        first = [pair for pair in more if pair[0].kind != "weak"]
        last = [pair for pair in more if pair[0].kind == "weak"]
        found = [
            Hit(mark, match.start(), match.start() + len(match[0].rstrip()))
            for mark, pattern in (*first, *self._marks, *last)
            if mark.name not in without
            for match in pattern.finditer(sentence + " ")
        ]
        kept: list[Hit] = []
        for hit in sorted(found, key=lambda hit: (hit.start - hit.end, hit.start)):
            if all(hit.end <= other.start or hit.start >= other.end for other in kept):
                kept.append(hit)
        return sorted(kept, key=lambda hit: hit.start)

    def currency(self, amount: str) -> str:
        """The ISO code of the currency that an amount is written in, "" if none is."""
        money = self.data["money"].items()
        codes = (c for c, words in money if _money(_coins(words)).search(amount))
        return next((code for code in codes if len(code) == 3), "")

    def is_general(self, topic: str) -> bool:
        return topic in self.topics and self.topics[topic].general

    def hears(self, word: str) -> bool:
        return word in self.known or bool(self.hits(word))

    def words_of(self, topic: str, facets: Iterable[str]) -> set[str]:
        """The words of some facets of a topic (of all, if none is named) and its weak ones, to
        find the tool of another shop that is about it."""
        about = self.topics[topic]
        asked = list(facets) or about.facets
        phrases = [phrase for facet in asked for phrase in about.facets.get(facet, ())]
        return set(re.findall(r"[^\W\d_]{4,}", " ".join([*phrases, *about.weak])))


@cache
def lexicon(*languages: str) -> Lexicon:
    """The lexicon that speaks the first of these languages and reads all of them and English."""
    data = FILES["en"]
    for name in (*reversed(languages[1:]), languages[0]):
        own = FILES[name]
        if own is not data:
            data = _laid_over(data, own) | {part: own[part] for part in OWN}
    return Lexicon(data)


def spoken(text: str) -> list[str]:
    """The languages in a text, most words first; none where it is in none that has a file."""
    plain = folded(text).lower()
    scores = {name: _score(plain, data["language"]) for name, data in FILES.items()}
    found = sorted(filter(scores.__getitem__, scores), key=lambda name: -scores[name])
    return found or _heard(re.findall(WORD, plain))


def _heard(words: list[str]) -> list[str]:
    """The language that has most of some words, where English has less of them."""
    written_alike = [name for name in FILES if "word" not in FILES[name]["language"]]
    missed = {name: sum(not lexicon(name).hears(word) for word in words) for name in written_alike}
    best = min(missed, key=lambda name: missed[name])
    return [best] if missed[best] < missed["en"] and 2 * missed[best] <= len(words) else []


def _score(plain: str, language: dict[str, Any]) -> int:
    """How many words of a language, by its script or else by words that only it has."""
    if re.search(language.get("never", "(?!)"), plain):
        return 0
    found = re.findall(language.get("word", WORD), plain)
    if "word" in language:
        return len(found) * int(language["weight"])
    return len(set(found) & set(language["words"]))


def folded(text: str) -> str:
    """Text as it is compared, character for character: without accents, which people leave out."""
    return "".join(map(_fold, text))


@cache
def _fold(char: str) -> str:
    base = unicodedata.normalize("NFD", char)[0]
    return base if base.isascii() or char in "ёЁ" else char


def phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Whole words; the longest phrase is tried first."""
    ordered = "|".join(sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\S)(?:{_regex(ordered)})(?!\S)")


def _regex(pattern: str) -> str:
    """A phrase as a pattern; each character of a script without spaces is a word of its own."""
    pattern = re.sub(SPACELESS, r"(?:\g<0> ?)", re.sub(r"(?<=\w)\*", r"\\w*", pattern))
    return pattern.replace("##", f"{ID}{{2,}}").replace("#", f"{ID}+")


def _id_patterns(ids: dict[str, list[str]], adding: list[str]) -> tuple[re.Pattern[str], ...]:
    """Ids to leave out, ids taken back ("A-17, sorry, B-21"), and the joints inside of lists."""
    excluding, slips, joints, between, last = (
        _regex("|".join(sorted(map(str, words), key=len, reverse=True)))
        for words in (
            ids["excluding"],
            [*ids["corrections"], *ids["correction_words"], "[,;:-]", r"\.\??"],
            [*ids["connectors"], "[,;/-]"],
            ids["determiners"],
            adding,
        )
    )
    glue = rf"(?:(?: (?:{joints}))+(?: (?:{between}))*)?"
    return (
        re.compile(
            rf"(?<!\S)(?:{excluding}) ?(?P<ids>{ID}(?:(?: , {ID})*(?: ,)? (?:{last}) ?{ID})?)"
        ),
        re.compile(rf"{ID}(?P<between>(?: (?:{slips}))+) ?(?={ID})"),
        re.compile(rf"(?<={ID})(?: 's{glue} ?(?={ID} 's)|(?: 's)?{glue} ?(?={ID}(?! 's)))"),
    )


def _coins(words: Iterable[str]) -> str:
    """Some currencies as a pattern; the characters of a word may stand apart."""
    spaced = (re.sub(SPACELESS, r"\g<0>\\s*", word) for word in words)
    return rf"(?:{'|'.join(sorted(spaced, key=len, reverse=True))})"


def _money(unit: str) -> re.Pattern[str]:
    """A figure with one of some currencies, before it or behind."""
    before, behind = rf"(?<!\w)-?{unit}\s?{FIGURE}", rf"(?<![\w.,-]){FIGURE}[\s-]*{unit}(?!\w)"
    return re.compile(rf"{behind}|{before}", re.IGNORECASE)


def _phrases(data: dict[str, Any]) -> Iterator[tuple[Mark, list[str]]]:
    for name, entry in data["request"].items():
        yield Mark("request", name), entry["phrases"]
    for kind in ("compare", "scope", "ordinal", "beside", "talk"):
        for name, phrases in data[kind].items():
            yield Mark(kind, name), phrases
    for name, entry in data["topic"].items():
        for facet, phrases in entry["facets"].items():
            yield Mark("topic", name, facet), phrases
        if "weak" in entry:
            yield Mark("weak", name), entry["weak"]
    for kind, phrases in data["refer"].items():
        if kind != "complaint":  # a tone: it takes no word away from what is asked
            yield Mark(kind), phrases
    yield Mark("again"), data["wish"]["again"]
    yield Mark("filler"), data["words"]["fillers"]


def _laid_over(below: Any, above: Any) -> Any:
    """The lists of two files one behind the other, table by table."""
    if isinstance(above, list):
        return [*above, *below]
    if not isinstance(above, dict):
        return above
    both = {name: _laid_over(below[name], above[name]) for name in above if name in below}
    return {**below, **above, **both}


def _read(file: Path) -> dict[str, Any]:
    heard, says, spoken = file.read_text(encoding="utf-8").partition("[says]")
    phrases = folded(re.sub("(?m)^#.*", "", heard))
    known = re.findall(r"[^\W\d_]+", phrases)
    return {**tomllib.loads(phrases + says + spoken), "known": known}


# At import: a file must not be read inside a running event loop. English is the first.
FILES = {
    file.stem: _read(file)
    for file in sorted(Path(__file__).parent.glob("*.toml"), key=lambda f: (f.stem != "en", f.stem))
}
lexicon("en")
