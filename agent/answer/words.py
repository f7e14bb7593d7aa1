"""The check of words that the model typed itself: they must not state a fact.

No such check is without error: one sharp enough for every evasion also refuses right sentences.
So nothing depends on it but the words themselves: what fails is dropped, and the values stand in
the cards either way.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tools.locales import Locale, clean, plainly

NUMBERED = re.compile(r"[\w.,/:-]*\d[\w.,/:-]*")
WORD = re.compile(r"[\w-]+")
LETTERS = re.compile(r"[^\W_]+")


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
        numbered = NUMBERED.findall(plainly(text))
        known = all(set(words(number)) <= set(self.known) for number in numbered)
        return known and not self.locale.facts(text, done=self.done)


def card_allows(literal: str, locale: Locale, others: Iterable[str]) -> bool:
    """Whether the words of a card state nothing of their own: no value, and no other order's id.

    literal: the template without its placeholders. others: the subjects of the turn's other calls;
    those of letters alone count in their own case, or the id "A" would forbid every "a".
    """
    letters = set(LETTERS.findall(clean(unicodedata.normalize("NFKC", literal))))
    foreign = any(set(LETTERS.findall(other)) <= letters for other in others)
    return not (foreign or NUMBERED.search(plainly(literal)) or locale.facts(literal, in_card=True))


def words(text: str) -> list[str]:
    """The words of a text, in the plain form in which two texts can be compared."""
    return WORD.findall(plainly(text))
