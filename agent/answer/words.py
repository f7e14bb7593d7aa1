"""The check of words that the model typed itself: they must not state a fact.

Free words pass when each part of them is one of the harmless things that are said around an answer
and none of it is a claim; what is in a language without a file is neither, and does not pass. No
such check is without error: one sharp enough for every evasion also refuses right sentences.
So nothing depends on it but the words themselves: what fails is dropped, and the values stand in
the cards either way.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from agent.answer.claims import Claims, Deed, claims
from tools.locales import DEFAULT, Locale, clean, guess, plainly, unmarked

NUMBERED = re.compile(r"[\w.,/:-]*\d[\w.,/:-]*")
WORD = re.compile(r"[\w-]+")
LETTERS = re.compile(r"[^\W_]+")
HAN = "[\u3040-\u30ff\u3400-\u9fff]"  # kana too: words without spaces
UNSPACED = re.compile(f"({HAN})")
APART = re.compile(rf"(?<={HAN})\s+(?={HAN})")
SIGNS = frozenset(" .,;:!?…'\"()-–—/&#*~·•«»„“”‘’¿¡，；：！？（）～、。「」『』《》🙂😊👋🙏")
# What is not what it looks like: marks on letters that have none (struck through), addresses, Roman
# numerals, and a word spelt out.
MARKED = re.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")
ADDRESS = re.compile(r"[^\W\d]\.[^\W\d]|//")
ROMAN = re.compile(r"(?<![\w-])[IVXLCDM]{2,}(?![\w-])")
SPELT = 4  # letters that stand alone, one after another


@dataclass(frozen=True)
class FreeWords:
    """What free words may repeat: `known`, the customer's words; `done`, deeds with a receipt, and
    what these were about."""

    locale: Locale
    known: Collection[str]
    done: Collection[Deed] = ()

    @classmethod
    def of(cls, locale: Locale, said: Iterable[str], done: Collection[Deed] = ()) -> "FreeWords":
        about = [subject for deed in done for subject in deed.subjects]
        return cls(locale, {word for text in (*said, *about) for word in words(text)}, done)

    def allows(self, text: str) -> bool:
        """Whether the text states nothing but numbers that the customer typed."""
        numbered = NUMBERED.findall(_spaced(plainly(text)))
        known = all(set(words(number)) <= set(self.known) for number in numbered)
        languages = _languages(self.locale, text)
        return (
            known
            and all(_legible(text, each, self.known) for each in languages)
            and not any(each.found(_joined(text), self.done) for each in languages)
            and not _in_english(text, languages)
        )


def _legible(text: str, language: Claims, known: Collection[str] = ()) -> bool:
    """Whether a text is what it looks like: written in the letters and signs of its language.

    The others are look-alikes, digits in disguise, spelt-out words, markup, addresses, and signs
    that state something ("✅").
    """
    shown = unicodedata.normalize("NFC", clean(text))
    disguised = MARKED.search(shown) or ADDRESS.search(shown)
    unknown = [word for word in words(text) if word not in known]
    parts = [part for word in unknown for part in LETTERS.findall(unmarked(word))]
    roman = {word.casefold() for word in ROMAN.findall(shown)}
    return (
        SIGNS.issuperset(c for c in shown if not _is_letter(c))
        and all(map(language.letters.fullmatch, parts))
        and not (disguised or roman & set(unknown) or _spelt(text, known))
    )


def _is_letter(character: str) -> bool:
    """Whether it is a letter, a mark on one, or a digit of any script."""
    return unicodedata.category(character)[0] in "LM" or character.isdecimal()


def _spelt(text: str, known: Collection[str]) -> bool:
    alone = (
        len(word) == 1 and word not in known and not UNSPACED.match(word)
        for word in LETTERS.findall(plainly(text))
    )
    return any(each and len(list(run)) >= SPELT for each, run in groupby(alone))


def _in_english(text: str, languages: Iterable[Claims]) -> bool:
    """Whether English words stand as a claim between words in other letters than Latin ones."""
    english = claims(DEFAULT)
    return not any(each.latin for each in languages) and bool(english.words(_spaced(text)))


def _languages(stated: Locale, text: str) -> list[Claims]:
    """What a text is checked in: the language that the model named, and the one it wrote."""
    return [claims(name) for name in {stated.name, guess(text) or stated.name}]


def words(text: str) -> list[str]:
    """The words of a text, in the plain form in which two texts can be compared."""
    return WORD.findall(_spaced(plainly(text)))


def _spaced(text: str) -> str:
    return UNSPACED.sub(r" \1 ", text)


def _joined(text: str) -> str:
    return APART.sub("", clean(text).replace("*", ""))
