"""What was spoken of so far, and what words such as "it" or "the second one" stand for."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from offline_model.clauses import Clause, Topics


@dataclass
class Thread:
    """What later messages may refer to.

    named: the orders spoken of last, in order. focus: those among them that were asked about last.
    lately: those of the last messages that named any. topics: what was asked, compared: the kinds
    of comparison.
    """

    named: list[str] = field(default_factory=list)
    focus: list[str] = field(default_factory=list)
    lately: list[str] = field(default_factory=list)
    topics: Topics = field(default_factory=dict)
    compared: list[str] = field(default_factory=list)

    def resolved(self, part: Clause) -> list[str]:
        """The ids that the words of a clause stand for."""
        listed = self.named if len(self.named) > 1 else self.lately or self.named
        found: list[str] = []
        for hit in part.hits:
            kind, name = hit.mark.kind, hit.mark.name
            if kind == "ordinal":
                found += listed[part_of(name)]
            elif kind == "last":
                found += listed[-1:]
            elif kind in ("other", "rest"):
                found += [i for i in listed if i not in self.focus]
        if not found and part.has("they"):
            found = next((ids for ids in (self.focus, listed) if len(ids) > 1), self.lately)
        if not found and part.has("it"):
            found = self.focus
        return unique(found)


def part_of(ordinal: str) -> slice:
    """The slice that an ordinal of the lexicon names: "1:2" is the second, "-2:" the last two."""
    first, _, last = ordinal.partition(":")
    return slice(int(first), int(last) if last else None)


def unique(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))
