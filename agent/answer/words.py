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

from agent.answer.claims import Claims, claims
from tools.locales import Locale, clean, guess, plainly

NUMBERED = re.compile(r"[\w.,/:-]*\d[\w.,/:-]*")
WORD = re.compile(r"[\w-]+")
LETTERS = re.compile(r"[^\W_]+")
UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u9fff])")  # kana and Han: words without spaces


@dataclass(frozen=True)
class FreeWords:
    """What free words may repeat: `known`, the customer's words; `done`, deeds with a receipt."""

    locale: Locale
    known: Collection[str]
    done: Collection[str] = ()

    @classmethod
    def of(cls, locale: Locale, said: Iterable[str], done: Collection[str] = ()) -> "FreeWords":
        return cls(locale, {word for text in said for word in words(text)}, done)

    def allows(self, text: str) -> bool:
        """Whether the text states nothing but numbers that the customer typed."""
        numbered = NUMBERED.findall(_spaced(plainly(text)))
        known = all(set(words(number)) <= set(self.known) for number in numbered)
        return known and not any(
            each.found(text, done=self.done) for each in _languages(self.locale, text)
        )


def card_allows(literal: str, locale: Locale, others: Iterable[str]) -> bool:
    """Whether the words of a card state nothing of their own: no value, and no other order's id.

    literal: the template without its placeholders. others: the subjects of the turn's other calls;
    those of letters alone count in their own case, or the id "A" would forbid every "a".
    """
    letters = set(LETTERS.findall(_spaced(clean(unicodedata.normalize("NFKC", literal)))))
    if NUMBERED.search(plainly(literal)):
        return False
    if any(set(LETTERS.findall(other)) <= letters for other in others):
        return False
    return not any(each.found(literal, in_card=True) for each in _languages(locale, literal))


def _languages(stated: Locale, text: str) -> list[Claims]:
    """What a text is checked in: the language that the model named, and the one it wrote."""
    return [claims(name) for name in {stated.name, guess(text) or stated.name}]


def words(text: str) -> list[str]:
    """The words of a text, in the plain form in which two texts can be compared."""
    return WORD.findall(_spaced(plainly(text)))


def _spaced(text: str) -> str:
    return UNSPACED.sub(r" \1 ", text)
