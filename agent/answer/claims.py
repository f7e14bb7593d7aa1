"""The words and patterns by which a text states a fact, as a language's file lists them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property

from tools.locales import Locale, locale, plainly, unmarked

NOTHING = "(?!)"
QUESTION = re.compile(r"[^.!?;。]*\?")
PARTS = re.compile(r"[.!?;:,。、—–]+")


@dataclass(frozen=True)
class Claims:
    """What counts as a claim in one language: the `check` section of its file."""

    locale: Locale

    def found(self, text: str, done: Iterable[str] = ()) -> list[str]:
        """The words in a text that state a fact. done: the tools whose deeds may be claimed."""
        bare = _bare(text)
        licensed = {
            word for tool in done if tool in self._deeds for word in self._deeds[tool].findall(bare)
        }
        rest = self._allowed.sub(" ; ", bare)
        asked = " ; ".join(QUESTION.findall(bare))  # a question back may name a state, but no value
        found = self._values.findall(asked) + self._free.findall(rest)
        claims = [word for word in found if word not in licensed]
        return claims or [part for part in PARTS.split(rest) if self._says_more(part)]

    def words(self, text: str) -> list[str]:
        """The words of a claim alone, for a text that may be in another language."""
        return self._everywhere.findall(_bare(text))

    def _says_more(self, part: str) -> bool:
        """Whether a part of a sentence is none of the things that are said around an answer."""
        word = r"[\w-]+" if self.locale.data["check"]["spaces"] else r"[a-z\d-]+|\w"
        short = len(re.findall(word, part)) < 3
        return not (short or self._harmless.search(part))

    @property
    def latin(self) -> bool:
        return str(self.locale.data["check"]["letters"]).startswith("a-z")

    @cached_property
    def letters(self) -> re.Pattern[str]:
        """A word in the language's own letters, or in plain Latin ones."""
        own = self.locale.data["check"]["letters"]
        return re.compile(rf"[a-z\d]+|[{own}\d]+")

    @cached_property
    def _everywhere(self) -> re.Pattern[str]:
        return self._any_of(self._listed(), self.locale.data["check"]["patterns"])

    @cached_property
    def _values(self) -> re.Pattern[str]:
        check = self.locale.data["check"]
        words = [word for key in ("numbers", "dates", "money") for word in check[key]]
        return self._any_of(words, check["patterns"])

    @cached_property
    def _free(self) -> re.Pattern[str]:
        check = self.locale.data["check"]
        patterns = [*check["patterns"], *check["statements"]]
        return self._any_of([*self._listed(), *check["free"]], patterns)

    @cached_property
    def _allowed(self) -> re.Pattern[str]:
        return self._any_of((), self.locale.data["check"]["allowed"])

    @cached_property
    def _harmless(self) -> re.Pattern[str]:
        return self._any_of((), self.locale.data["check"]["harmless"])

    @cached_property
    def _deeds(self) -> dict[str, re.Pattern[str]]:
        deeds = self.locale.data["check"]["deeds"]
        return {tool: self._any_of(words) for tool, words in deeds.items()}

    def _listed(self) -> list[str]:
        check = self.locale.data["check"]
        lists = [check[key] for key in ("numbers", "dates", "money", "status", "hedges")]
        return [word for each in (*lists, *check["deeds"].values()) for word in each]

    def _any_of(self, words: Iterable[str], patterns: Iterable[str] = ()) -> re.Pattern[str]:
        longest_first = sorted(words, key=len, reverse=True)
        every = [*map(self._bounded, longest_first), *map(unmarked, patterns)]
        return re.compile("|".join(every) or NOTHING)

    def _bounded(self, word: str) -> str:
        pattern = re.escape(_bare(word)).replace(r"\*", r"\w*")
        apart = self.locale.data["check"]["spaces"] and word[0].isalnum()
        return rf"(?<!\w){pattern}(?!\w)" if apart else pattern


@cache
def claims(language: str) -> Claims:
    """The claims of a language by its name."""
    return Claims(locale(language))


def _bare(text: str) -> str:
    return unmarked(plainly(text))
