"""Sentences cut into clauses: which orders a part of a message is about, and what it asks."""

import re
from dataclasses import dataclass, field

from offline_model.lexicon import ID, Hit, Lexicon, Marks
from offline_model.tokens import Token

Topics = dict[str, set[str]]  # topic → the facets asked of it
REFERENCES = ("it", "they", "other", "rest", "last", "ordinal")


@dataclass
class Clause:
    """What one part of a sentence says: its words, behind the `joint` that led to it.

    `strange` are those words that no phrase and no word of the lexicon accounts for, `values` what
    each "~" stands for. `sentence` is where it stands, from character `start` up to `end`.
    """

    joint: str = ""
    words: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    values: list[Token] = field(default_factory=list)
    sentence: str = ""
    start: int = 0
    end: int = 0
    question: bool = False

    @property
    def marks(self) -> str:
        """The characters of the ids that it names."""
        return "".join(re.findall(ID, self.text))

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
        return not self.marks and self.has(*REFERENCES)

    @property
    def subject(self) -> bool:
        return bool(self.marks) or self.has(*REFERENCES, "scope")

    @property
    def asks(self) -> bool:
        return self.has("topic", "compare", "request")

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def said(self) -> str:
        """Its words with the joints between them."""
        return self.sentence[self.start : self.end]

    def up_to(self, place: int) -> str:
        """What it says before a character of its sentence."""
        return self.sentence[self.start : place].rstrip()

    def join(self, other: "Clause") -> None:
        self.words += other.words
        self.hits += other.hits
        self.strange += other.strange
        self.end = other.end


def clauses(sentence: str, lexicon: Lexicon, extra: Marks = ()) -> list[Clause]:
    """The clauses of a sentence; a part without a subject or a question joins its neighbour."""
    parts = _parts(sentence, lexicon, extra)
    found: list[Clause] = []
    for part, following in zip(parts, [*parts[1:], Clause()], strict=False):
        if found and not _begins(found[-1], part, following, lexicon):
            found[-1].join(part)
        else:
            found.append(part)
    return found


def _begins(current: Clause, part: Clause, following: Clause, lexicon: Lexicon) -> bool:
    """Whether a part is a clause of its own, or still belongs to the clause before it."""
    if not (current.subject and current.asks):
        return current.subject and part.refers
    if part.subject:
        waits = following.asks and not following.marks  # "…, B-21: how much?"
        adds = current.refers and part.joint in lexicon.data["words"]["adding"]
        return part.asks or waits or adds
    return part.asks and _leads_on(part, following, lexicon)


def _leads_on(part: Clause, following: Clause, lexicon: Lexicon) -> bool:
    """A question without a subject belongs to the next part where that goes on with its phrase
    ("the delivery date and carrier of B-21"), not where it opens a question of its own."""
    opened = {*part.words[:1], *following.words[:1]}
    return bool(following.marks) and not opened & set(lexicon.data["words"]["openers"])


def _parts(text: str, lexicon: Lexicon, extra: Marks) -> list[Clause]:
    hits = lexicon.hits(text, extra, without=["bought"] if re.search(ID, text) else [])
    joints, parts = lexicon.data["words"]["joints"], [Clause()]
    for word in re.finditer(r"\S+", text):
        around = [hit for hit in hits if hit.start <= word.start() < hit.end]
        if word[0] in joints and not any(" " in text[hit.start : hit.end] for hit in around):
            parts.append(Clause(word[0]))
            continue
        if not parts[-1].words:
            parts[-1].sentence, parts[-1].start = text, word.start()
        parts[-1].words.append(word[0])
        parts[-1].end = word.end()
        parts[-1].hits += [hit for hit in around if hit.start == word.start()]
        if word[0].isalpha() and word[0] not in lexicon.known and not around:
            parts[-1].strange.append(word[0])
    return [part for part in parts if part.words]
