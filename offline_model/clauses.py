"""Sentences cut into clauses: which orders a part of a message is about, and what it asks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from offline_model.lexicon import Hit, Lexicon, Mark
from offline_model.sentences import Group, Sentence

Topics = dict[str, set[str]]  # topic → the facets asked of it
Extra = Sequence[tuple[Mark, re.Pattern[str]]]  # marks that the offered tools bring along
REFERENCES = ("it", "they", "other", "rest", "last", "mentioned", "ordinal")


@dataclass
class Clause:
    """What one part of a sentence says: its words, and the phrases (`said`) that its hits are."""

    words: str
    said: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)

    @property
    def topics(self) -> Topics:
        """The topics of the clause; a weak word counts where there is no strong one."""
        found: Topics = {}
        for kind in ("topic", "weak"):
            for hit in self.hits if not found or kind == "topic" else ():
                if hit.mark.kind == kind:
                    facets = found.setdefault(hit.mark.name, set())
                    facets.update([hit.mark.facet] if hit.mark.facet else [])
        return found

    def named(self, kind: str) -> list[str]:
        """The names of the marks of a kind, in order."""
        return [hit.mark.name for hit in self.hits if hit.mark.kind == kind]

    def has(self, *kinds: str) -> bool:
        return any(hit.mark.kind in kinds for hit in self.hits)

    @property
    def refers(self) -> bool:
        return not self.ids and self.has(*REFERENCES)

    @property
    def subject(self) -> bool:
        return bool(self.ids) or self.has(*REFERENCES, "scope")

    @property
    def asks(self) -> bool:
        return self.has("topic", "compare", "request")

    def join(self, other: "Clause") -> None:
        self.words += " " + other.words
        self.said += other.said
        self.ids += other.ids
        self.hits += other.hits


def clauses(sentence: Sentence, lexicon: Lexicon, extra: Extra = ()) -> list[Clause]:
    """The clauses of a sentence; a part without a subject or a question joins its neighbour."""
    parts = _parts(sentence, lexicon, extra)
    found: list[Clause] = []
    for place, part in enumerate(parts):
        following = parts[place + 1] if place + 1 < len(parts) else None
        if found and not _begins(found[-1], part, following, lexicon):
            found[-1].join(part)
        else:
            found.append(part)
    return found


def _begins(current: Clause, part: Clause, following: Clause | None, lexicon: Lexicon) -> bool:
    """Whether a part is a clause of its own, or still belongs to the clause before it."""
    if not (current.subject and current.asks):
        return current.subject and part.subject and part.asks and part.refers
    if part.subject:
        return part.asks or _waits_for(following, lexicon)
    return part.asks and _leads_on(part, following, lexicon)


def _waits_for(following: Clause | None, lexicon: Lexicon) -> bool:
    """A subject alone: the question about it comes next ("…, B-21: how much?")."""
    return following is not None and following.asks and not following.ids


def _leads_on(part: Clause, following: Clause | None, lexicon: Lexicon) -> bool:
    """A question without a subject belongs to the next part where that goes on with its phrase
    ("the delivery date and carrier of B-21"), not where it opens a question of its own."""
    if following is None or not (following.ids and following.asks):
        return False
    return not _opens(part, lexicon) and not _opens(following, lexicon)


def _opens(part: Clause, lexicon: Lexicon) -> bool:
    first = part.words.split()[:1]
    return bool(first) and first[0] in lexicon.data["words"]["openers"]


def _parts(sentence: Sentence, lexicon: Lexicon, extra: Extra) -> list[Clause]:
    words, groups = list(sentence.words), [list(group.ids) for group in sentence.groups]
    text = " ".join(words)
    hits = lexicon.hits(text, extra, without=["bought"] if groups else [])
    if _shares_badly(sentence, hits):
        return _parts(_split_last(sentence), lexicon, extra)
    cuts = _cuts(text, hits, lexicon)
    turns = set() if cuts else _turns(text, hits)
    ids = iter(groups)
    parts = [Clause("")]
    place = 0
    for word in words:
        if place in cuts or place in turns:
            parts.append(Clause(""))
        if place not in cuts:
            parts[-1].words += f" {word}"
        if word.startswith("#"):
            parts[-1].ids += next(ids)
        begun = [hit for hit in hits if hit.start == place]
        parts[-1].hits += begun
        parts[-1].said += [text[hit.start : hit.end] for hit in begun]
        place += len(word) + 1
    return [part for part in parts if part.words.strip()]


def _cuts(text: str, hits: list[Hit], lexicon: Lexicon) -> set[int]:
    """Where joints stand that are not inside of a phrase."""
    joints = lexicon.data["words"]["joints"]
    phrases = [hit for hit in hits if " " in text[hit.start : hit.end]]
    found = set()
    place = 0
    for word in text.split(" "):
        inside = any(hit.start <= place < hit.end for hit in phrases)
        if word in joints and not inside:
            found.add(place)
        place += len(word) + 1
    return found


def _turns(text: str, hits: list[Hit]) -> set[int]:
    """Where clauses begin that no joint parts: "price A-17 delivery B-21"."""
    asked = [(hit.start, "?") for hit in hits if hit.mark.kind == "topic"]
    named = [(match.start(), "#") for match in re.finditer("#+", text)]
    steps = sorted(asked + named)
    runs = [step for n, step in enumerate(steps) if not n or steps[n - 1][1] != step[1]]
    order = "".join(kind for _, kind in runs)
    if order not in ("?#?#", "#?#?", "?#?#?#", "#?#?#?"):
        return set()
    return {place for place, _ in runs[2::2]}


def _shares_badly(sentence: Sentence, hits: list[Hit]) -> bool:
    """Whether the last id of a list has its own question: "price of A-17 and B-21's carrier"."""
    if "##" not in sentence.words:
        return False
    word = sentence.words.index("##")
    place = len(" ".join(sentence.words[:word]))
    topics = [hit for hit in hits if hit.mark.kind in ("topic", "weak")]
    before = {hit.mark.name for hit in topics if hit.end <= place}
    behind = [hit.mark.name for hit in topics if hit.start == place + 4 - (place == 0)]
    group = sentence.groups[_number(sentence, word)]
    owned = group.owned == group.ids[-1:]
    return bool(before and behind) and (owned or behind[0] not in before)


def _number(sentence: Sentence, word: int) -> int:
    """Which of the sentence's groups a word stands for."""
    return sum(other.startswith("#") for other in sentence.words[:word])


def _split_last(sentence: Sentence) -> Sentence:
    word = sentence.words.index("##")
    number = _number(sentence, word)
    group = sentence.groups[number]
    first, last = group.ids[:-1], group.ids[-1:]
    words = ["##" if len(first) > 1 else "#", "and", "#"]
    return Sentence(
        [*sentence.words[:word], *words, *sentence.words[word + 1 :]],
        [*sentence.groups[:number], Group(first), Group(last), *sentence.groups[number + 1 :]],
        sentence.question,
    )
