"""The words and patterns by which a text states a fact, as a language's file lists them."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from agent.calls import ToolResult
from tools.locales import Locale, locale, plainly, unmarked

NOTHING = "(?!)"
QUESTION = re.compile(r"[^.!?;。]*\?")
PARTS = re.compile(r"[.!?;:,。、—–]+")
SENTENCE = re.compile(r"[^.!?;。]+(?:[.!;。]+|$)")  # a question is none
NAMED = re.compile(r"<([a-z]+)>")
STATES = {"done": ("done", "accepted"), "accepted": ("accepted",)}  # what each of them licenses


@dataclass(frozen=True)
class Deed:
    """What the receipts of a tool let the agent say of these subjects; `state` is one of STATES."""

    tool: str
    state: str
    subjects: Collection[str]


def deeds(results: Collection[ToolResult]) -> list[Deed]:
    """The deeds that may be told: of each tool, the least that holds for all its results.

    Where one of them has failed there is none, since "it" may be either.
    """
    every: dict[str, set[str]] = {}
    for result in results:
        every.setdefault(result["tool"], set()).add(_state(result.get("data")))
    return [
        Deed(
            tool,
            "done" if states == {"done"} else "accepted",
            {r["subject"] for r in results if r["tool"] == tool},
        )
        for tool, states in every.items()
        if states <= STATES.keys()
    ]


def _state(data: Any) -> str:
    """The state in a receipt, "" where it is none, or holds no longer."""
    receipt = data if isinstance(data, dict) else {}
    return "" if receipt.get("status") == "given_back" else str(receipt.get("state"))


@dataclass(frozen=True)
class Claims:
    """What counts as a claim in one language: the `check` section of its file."""

    locale: Locale

    def found(self, text: str, done: Iterable[Deed] = ()) -> list[str]:
        """The words in a text that state a fact, but for sentences that tell of what was done."""
        licensed = [pattern for deed in done for pattern in self._telling_of(deed)]
        bare = SENTENCE.sub(lambda said: _unless(licensed, said[0]), _bare(text))
        rest = self._allowed.sub(" ; ", bare)
        asked = " ; ".join(QUESTION.findall(bare))  # a question back may name a state, but no value
        claims = self._values.findall(asked) + self._free.findall(rest)
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

    def _telling_of(self, deed: Deed) -> list[re.Pattern[str]]:
        """The sentences that a deed licenses; `<order>` in one stands for another of the file."""
        licensed = self.locale.data["check"]["licensed"]
        escaped = [re.escape(_bare(each)).replace("<", "[<]") for each in deed.subjects if each]
        ids = "|".join(escaped) or NOTHING
        words = {**licensed["words"], "id": rf"(?:{ids})(?:<and>(?:{ids}))*"}

        def written(text: str) -> str:
            return NAMED.sub(lambda name: f"(?:{written(words[name[1]])})", text)

        listed = [
            each for state in STATES[deed.state] for each in licensed[state].get(deed.tool, ())
        ]
        return [re.compile(unmarked(written(f"<before>?(?:{each})<after>*"))) for each in listed]

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


def _unless(licensed: Iterable[re.Pattern[str]], sentence: str) -> str:
    words = sentence.strip(" .!;。")
    return " ; " if any(pattern.fullmatch(words) for pattern in licensed) else sentence


def _bare(text: str) -> str:
    return unmarked(plainly(text))
