"""What a message asks, in the light of what was said before it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from offline_model.clauses import Clause, Extra, Topics, clauses
from offline_model.lexicon import Lexicon
from offline_model.sentences import Message, read_message

DETAIL: Topics = {"order": set()}
# What a comparison tells by itself, so that nothing else is asked for it.
COMPARED = {"sum": ("order", {"price", "date"}), "dates": ("delivery", {"when", "where"})}


@dataclass(frozen=True)
class Ask:
    """One thing that is wanted: a topic ("delivery", "compare", "list", "tool:NAME") of orders.

    The orders are `ids`, or, where the customer named none, a `scope` of all they have: "all",
    "plural" ("my orders"), "any" (nothing was said), "open", "newest", "oldest", or a slice such as
    "nth:1:2".
    """

    topic: str
    ids: tuple[str, ...] = ()
    scope: str = ""
    facets: frozenset[str] = frozenset()


@dataclass
class Reading:
    """`request` is a deed that is wanted, `talk` a kind of small talk, `foreign` that it is about
    something else than orders. With nothing set, the customer has to be asked which order."""

    asks: list[Ask] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    request: str = ""
    talk: str = ""
    foreign: bool = False


@dataclass
class Thread:
    """What later messages may refer to.

    named: the orders spoken of last, in order. focus: those among them that were asked about last.
    topics: what was asked. mentioned: the orders that the last answer spoke of.
    """

    named: list[str] = field(default_factory=list)
    focus: list[str] = field(default_factory=list)
    topics: Topics = field(default_factory=dict)
    mentioned: list[str] = field(default_factory=list)


def read(text: str, thread: Thread, lexicon: Lexicon, extra: Extra = ()) -> Reading:
    """Reads one message and moves the thread on to it."""
    message = read_message(text, lexicon)
    parts = [part for s in message.sentences for part in clauses(s, lexicon, extra)]
    return _Reader(message, parts, thread, lexicon).read()


@dataclass
class _Reader:
    message: Message
    parts: list[Clause]
    thread: Thread
    lexicon: Lexicon

    def read(self) -> Reading:
        reading = Reading(excluded=self.message.excluded)
        self.earlier: Topics = {}
        self.all_here: Topics = {}
        self.scope_here = ""
        self.waiting: list[str] = []
        self.named_here: list[str] = []
        for place, part in enumerate(self.parts):
            reading.request = reading.request or "".join(part.named("request")[:1])
            reading.asks += self._asks(place, part)
        talk = [name for part in self.parts for name in part.named("talk")]
        reading.talk = talk[-1] if talk else ""
        strange = self._strange(self.parts)
        numbers = any("~" in part.words for part in self.parts)
        reading.foreign = (bool(strange) or numbers) and not self._about_orders(self.parts)
        if reading.talk and len(strange) > 1:
            reading.talk = ""
        return reading

    # One clause.

    def _asks(self, place: int, part: Clause) -> list[Ask]:
        ids, scope = self._subject(place, part)
        if part.has("request") and not ids:
            return []
        topics = self._topics(place, part, bool(ids), scope)
        if topics and not ids and all(_general({name: set()}, self.lexicon) for name in topics):
            scope = ""
        if topics is None or not (ids or scope or _general(topics, self.lexicon)):
            self._remember(part, ids, topics or part.topics)
            return []
        self._remember(part, ids, topics)
        compared = self._compared(part, ids, scope)
        for kind in compared:
            topics = _without(topics, kind)
        if not topics and not compared:
            topics = _of_comparison(part)
        everything = "all" if scope == "plural" else scope
        asks = [Ask("compare", tuple(ids), everything, frozenset(compared))] if compared else []
        asks += [Ask(name, (i,), "", frozenset(topics[name])) for i in ids for name in topics]
        if not ids and scope:
            asks += [Ask(name, (), scope, frozenset(topics[name])) for name in topics]
        if not ids and not scope:
            asks += [Ask(name, (), "", frozenset(topics[name])) for name in topics]
        return asks

    def _remember(self, part: Clause, ids: list[str], topics: Topics) -> None:
        if part.ids:
            self.named_here += [i for i in part.ids if i not in self.named_here]
            self.thread.named = self.named_here
        if ids and not topics:
            self.waiting += ids
        if ids:
            self.thread.focus = list(dict.fromkeys([*self.waiting, *ids]))
        if topics:
            self.waiting = []
            self.all_here = {**self.all_here, **topics}
            self.thread.topics = self.earlier = topics

    def _subject(self, place: int, part: Clause) -> tuple[list[str], str]:
        """The ids that a clause is about, or the scope of the customer's orders."""
        if part.ids:
            return list(dict.fromkeys(part.ids)), ""
        if part.refers:
            return self._referred(part)
        scopes = part.named("scope")
        self.scope_here = "".join(scopes[:1]) or self.scope_here
        if scopes and not (self.message.ids and scopes[0] == "plural"):
            return [], "all" if scopes[0] == "bought" else scopes[0]
        return self._implied(part)

    def _referred(self, part: Clause) -> tuple[list[str], str]:
        known = self._resolved(part)
        if known:
            return known, ""
        if self.message.ids:
            return self.message.ids, ""
        return [], self._scope_of_reference(part)

    def _resolved(self, part: Clause) -> list[str]:
        """The ids that words such as "it", "both" or "the second one" stand for."""
        named, focus = self.thread.named, self.thread.focus
        found: list[str] = []
        for hit in part.hits:
            kind, name = hit.mark.kind, hit.mark.name
            if kind == "ordinal":
                found += named[part_of(name)]
            elif kind == "last":
                found += named[-1:]
            elif kind == "mentioned":
                found += (self.thread.mentioned or named)[-1:]
            elif kind in ("other", "rest"):
                found += [i for i in named if i not in focus]
        if not found and part.has("they"):
            found = named if len(focus) < 2 else focus
        if not found and part.has("it"):
            found = focus
        return list(dict.fromkeys(found))

    def _scope_of_reference(self, part: Clause) -> str:
        if self.scope_here:
            return self.scope_here
        if part.has("ordinal"):
            return "nth:" + part.named("ordinal")[0]
        if part.has("last"):
            return "newest"
        if part.has("other", "rest", "mentioned") or not part.topics:
            return "any" if part.has("rest") else ""
        return "" if len(self._strange([part])) > 1 and not part.has("own", "noun") else "any"

    def _implied(self, part: Clause) -> tuple[list[str], str]:
        """A question without a subject: about the orders just named, else about all open ones."""
        if not part.has("topic", "weak", "compare") or _general(part.topics, self.lexicon):
            return [], ""
        if self.message.ids:
            return list(self.named_here or self.message.ids), ""
        strange = len(self._strange([part]))
        if self.thread.focus and strange < 2:
            return self.thread.focus, ""
        if part.has("noun", "own") or not strange or self._about_orders(self.parts):
            return [], "all" if part.has("compare") else "any"
        return [], ""

    def _topics(self, place: int, part: Clause, has_ids: bool, scope: str) -> Topics | None:
        """What a clause asks; None where it only names what another clause asks about."""
        if part.topics or part.has("compare"):
            return part.topics
        if part.has("request"):
            return DETAIL if has_ids else None
        if scope:
            return None if self._asked_later(place) else {"list": set()}
        if not has_ids:
            return None
        if self.all_here and self.lexicon.ids["same"] & set(part.words.split()):
            return self.all_here
        if self.earlier and (part.has("follow") or not self._asked_later(place)):
            return self.earlier
        if self._asked_later(place):
            return None
        return self.thread.topics if self.thread.topics and self._follows(part) else DETAIL

    def _asked_later(self, place: int) -> bool:
        """Whether the next clause that asks anything asks it of the orders named here."""
        later = next((part for part in self.parts[place + 1 :] if part.asks), None)
        return later is not None and not later.ids and not later.has("scope")

    def _follows(self, part: Clause) -> bool:
        """Whether a clause that names orders takes up the question asked before."""
        short = len([word for word in part.words.split() if not word.startswith("#")]) < 5
        return part.has("follow") or short

    def _compared(self, part: Clause, ids: list[str], scope: str) -> list[str]:
        names = part.named("compare")
        if names == ["any"] and part.topics.get("order"):  # "the prices, compared"
            return []
        several = len(ids) > 1 or (not ids and scope not in ("newest", "oldest"))
        if not names or not several:
            return []
        return sorted({"sum", "dates"} if "any" in names else set(names))

    # What it is about.

    def _strange(self, parts: Sequence[Clause]) -> list[str]:
        """Words that the lexicon does not know: the message may be about something else."""
        found = []
        for part in parts:
            words = " " + part.words + " "
            for phrase in part.said:
                words = words.replace(f" {phrase} ", "  ")
            found += [w for w in words.split() if w.isalpha() and w not in self.lexicon.known]
        return found

    def _about_orders(self, parts: Sequence[Clause]) -> bool:
        return bool(self.message.ids) or any(part.has("noun", "own", "scope") for part in parts)


def part_of(ordinal: str) -> slice:
    """The slice that an ordinal of the lexicon names: "1:2" is the second, "-2:" the last two."""
    first, _, last = ordinal.partition(":")
    return slice(int(first), int(last) if last else None)


def _general(topics: Topics, lexicon: Lexicon) -> bool:
    """Whether there is a topic that needs no order."""
    return any(
        name.startswith("tool:") or (name in lexicon.topics and lexicon.topics[name].general)
        for name in topics
    )


def _of_comparison(part: Clause) -> Topics:
    """What a word of comparison asks where there is a single order."""
    known = [COMPARED[name] for name in part.named("compare") if name in COMPARED]
    return {name: set(facets) for name, facets in known}


def _without(topics: Topics, kind: str) -> Topics:
    name, facets = COMPARED[kind]
    rest = {topic: set(asked) for topic, asked in topics.items()}
    if name in rest and not (rest[name] - facets):
        del rest[name]
    return rest
