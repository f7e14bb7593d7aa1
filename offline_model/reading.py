"""What a message asks, in the light of what was said before it."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import islice

from offline_model.clauses import Clause, Topics, clauses
from offline_model.deeds import Deed, deeds_of, denied, filled, once_more, wished
from offline_model.lexicon import Lexicon, Marks
from offline_model.message import Message, read_message
from offline_model.thread import Thread, unique

DETAIL: Topics = {"order": set()}
# What a comparison tells by itself, so that nothing else is asked for it.
COMPARED = {
    "sum": ("order", {"price", "date"}),
    "dates": ("delivery", {"when", "where"}),
    "any": ("order", set[str]()),
}


@dataclass(frozen=True)
class Ask:
    """One thing that is wanted: a topic ("delivery", "compare", "list", "tool:NAME") of orders.

    The orders are `ids`, or, where the customer named none, a `scope` of all they have: "all",
    "plural" ("my orders"), "any" (nothing was said), "open", a slice by date such as "nth:-1:", or
    those that hold some "item:teapot".
    """

    topic: str
    ids: tuple[str, ...] = ()
    scope: str = ""
    facets: frozenset[str] = frozenset()


@dataclass
class Reading:
    """`deeds` are what is wanted to be done, `sums` what would be refunds of the amounts that a
    message names without such a wish, `anew` that something is wanted once more, `only_anew` that
    nothing else is said; `beside` what else is wanted that no tool does;
    `named` the orders of a message that asks nothing of them, `again` a yes to what came before;
    `talk` a kind of small talk, `tone` how it is said, `foreign` that it is about something else
    than orders, `unread` that hardly a word of it is known. With nothing set, the customer has to
    be asked which order."""

    asks: list[Ask] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    sums: list[Deed] = field(default_factory=list)
    anew: bool = False
    only_anew: bool = False
    again: bool = False
    named: list[str] = field(default_factory=list)
    talk: str = ""
    tone: str = ""
    beside: list[str] = field(default_factory=list)
    foreign: bool = False
    unread: bool = False


def read(
    text: str, thread: Thread, lexicon: Lexicon, extra: Marks = (), offered: Collection[str] = ()
) -> Reading:
    """Reads one message and moves the thread on to it; `offered` are the deeds that can be done."""
    message, parts = read_message(text, lexicon), list[Clause]()
    values = iter(message.values)
    for sentence, question in zip(message.sentences, message.questions, strict=True):
        for part in clauses(sentence, lexicon, extra):
            part.question = question
            part.values = list(islice(values, part.words.count("~")))
            parts.append(part)
    return _Reader(message, parts, thread, lexicon, offered).read()


@dataclass
class _Reader:
    message: Message
    parts: list[Clause]
    thread: Thread
    lexicon: Lexicon
    offered: Collection[str]
    all_here: Topics = field(default_factory=dict)
    scope_here: str = ""
    named_here: list[str] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    forbidden: list[tuple[str, str]] = field(default_factory=list)

    def read(self) -> Reading:
        reading = Reading(excluded=self.message.excluded)
        asks = [(part, self._asks(place, part)) for place, part in enumerate(self.parts)]
        acts = any(deed.kind in self.offered for deed in self.deeds)
        reading.asks = [
            ask for part, found in asks if not (acts and self._tells(part, found)) for ask in found
        ]
        if not any(part.asks or part.has("weak") for part in self.parts):
            reading.named = self.message.ids
        strange = [word for part in self.parts for word in part.strange]
        numbers = any("~" in part.words for part in self.parts)
        reading.deeds = filled(self._allowed(), self.parts, self.lexicon)
        reading.sums = [deed for part in self.parts for deed in self._sums(part)]
        reading.anew, alone = once_more(self.message.sentences, self.lexicon)
        reading.only_anew = alone and not any(self.message.questions)
        reading.beside = self._named("beside")
        reading.again = any(part.has("again") for part in self.parts)
        complains = any(map(self.lexicon.complaints.search, self.message.sentences))
        reading.tone = "sorry" if complains else ""
        about = self._about_orders() or any(map(self._perhaps, self.parts))
        reading.foreign = (bool(strange) or numbers) and not about
        reading.unread = len(strange) + bool(self.message.ids) > 2
        said = self._named("talk")
        reading.talk = next((name for name in self.lexicon.data["talk"] if name in said), "")
        return reading

    def _named(self, kind: str) -> list[str]:
        return unique(name for part in self.parts for name in part.named(kind))

    def _allowed(self) -> list[Deed]:
        """The deeds without the orders of which a clause forbids them."""
        left = []
        for deed in self.deeds:
            ids = tuple(i for i in deed.ids if (deed.kind, i) not in self.forbidden)
            left += [replace(deed, ids=ids)] if ids or not deed.ids else []
        return left

    def _sums(self, part: Clause) -> list[Deed]:
        if part.question or part.has("request"):
            return []
        ids = self.message.ids_in(part.marks) or self.thread.focus
        deeds = deeds_of("refund", ids, "", part, self.lexicon)
        return [deed for deed in deeds if deed.given]

    # One clause.

    def _asks(self, place: int, part: Clause) -> list[Ask]:
        ids, scope = self._subject(part)
        if more := self._more(part, ids):
            return more
        topics = self._topics(place, part, scope)
        if topics and not (ids or scope):  # "how long can I return things?" is about no order
            topics = {name: facets for name, facets in topics.items() if self._general(name)}
        general = bool(topics) and all(map(self._general, topics or ()))
        scope = "" if general and not ids else scope
        wanted = [kind for kind in unique(part.named("request")) if self._wanted(kind, part)]
        for kind in unique(part.named("request")):
            if kind not in wanted and not part.values and denied(kind, part, self.lexicon):
                self.forbidden += [(kind, order_id) for order_id in self._object(part)[0]]
        for kind in wanted:
            self.deeds += deeds_of(kind, *self._object(part), part, self.lexicon)
        if wanted or (part.has("beside", "request") and not ids):
            topics = None
        if topics is None or not (ids or scope or general):
            self._remember(part, ids, topics or part.topics, [])
            return []
        compared = self._compared(part, ids, scope)
        self._remember(part, ids, topics, compared)
        told = [COMPARED[kind] for kind in compared]
        topics = {
            t: asked
            for t, asked in topics.items()
            if not any(t == n and asked <= f for n, f in told)
        }
        if not compared:
            topics = dict(COMPARED[name] for name in part.named("compare")) | topics
        everything = "all" if scope in ("plural", "any") and compared != ["dates"] else scope
        asks = [Ask("compare", tuple(ids), everything, frozenset(compared))] if compared else []
        groups: list[tuple[str, ...]] = [(i,) for i in ids] or [()]
        return asks + [Ask(t, i, scope, frozenset(topics[t])) for i in groups for t in topics]

    def _wanted(self, kind: str, part: Clause) -> bool:
        return kind not in self.offered or wished(kind, part, self.parts, self.lexicon)

    def _object(self, part: Clause) -> tuple[tuple[str, ...], str]:
        """What a deed is wanted of: else what the message names, or the thread is about."""
        ids, scope = self._subject(part)
        if ids or scope not in ("", "any", "plural"):
            return tuple(ids), scope
        alone = self.thread.focus if len(self.thread.focus) == 1 else []
        return tuple(self.message.ids or alone), scope

    def _tells(self, part: Clause, found: list[Ask]) -> bool:
        """Whether a clause beside a deed asks nothing, but tells what it is wanted for."""
        asks = set(part.words[:1]) & set(self.lexicon.data["words"]["openers"]) - {"i"}
        complains = self.lexicon.complaints.search(part.text)
        tells = complains is not None or all(self._general(ask.topic) for ask in found)
        return not (part.question or asks) and (not part.marks or tells)

    def _more(self, part: Clause, ids: list[str]) -> list[Ask]:
        """A comparison of before with some more orders: "and with A-17 on top?"."""
        if not (part.marks and self.thread.compared and part.has("more")):
            return []
        ids = unique([*self.thread.focus, *ids])
        self.thread.named = self.thread.focus = ids
        return [Ask("compare", tuple(ids), "", frozenset(self.thread.compared))]

    def _remember(self, part: Clause, ids: list[str], topics: Topics, compared: list[str]) -> None:
        named = self.message.ids_in(part.marks)
        if named:
            anew = len(named) > 1 and not self.named_here
            self.thread.lately = unique([*([] if anew else self.thread.lately), *named])
            self.named_here = unique([*self.named_here, *named])
            self.thread.named = self.named_here
        if ids:
            self.thread.focus = ids
        if topics or compared:
            self.all_here = {**self.all_here, **topics}
            self.thread.topics = topics
            self.thread.compared = compared

    def _subject(self, part: Clause) -> tuple[list[str], str]:
        """The ids that a clause is about, or the scope of the customer's orders."""
        if part.marks:
            return self.message.ids_in(part.marks), ""
        if part.refers:
            ids = self._comparable(part, self.thread.resolved(part)) or self.message.ids
            return ids, "" if ids else self._scope_of_reference(part)
        scopes = part.named("scope")
        self.scope_here = "".join(scopes[:1]) or self.scope_here
        if scopes and not (self.message.ids and scopes[0] == "plural"):
            return [], "all" if scopes[0] == "bought" else scopes[0]
        return self._implied(part)

    def _comparable(self, part: Clause, ids: list[str]) -> list[str]:
        """Where one order is to be compared with nothing, those of the last turns are meant."""
        alone = part.has("compare") and len(ids) < 2 and not self.message.ids
        return self.thread.lately if alone and len(self.thread.lately) > 1 else ids

    def _scope_of_reference(self, part: Clause) -> str:
        if part.has("ordinal"):
            return "nth:" + part.named("ordinal")[0]
        if part.has("last"):
            return "nth:-1:"
        if self.scope_here:
            return self.scope_here
        return "" if part.strange and not part.has("own", "noun") else "any"

    def _implied(self, part: Clause) -> tuple[list[str], str]:
        """A question without a subject: about the orders just named, else about all open ones."""
        if not part.has("topic", "weak", "compare") or any(map(self._general, part.topics)):
            return [], ""
        if part.strange and part.has("own") and not part.has("noun"):
            return [], "item:" + " ".join(part.strange)
        if self.message.ids:
            return list(self.named_here or self.message.ids), ""
        if self.thread.focus and len(part.strange) < 2:
            return self._comparable(part, self.thread.focus), ""
        if part.has("noun", "own") or not part.strange or self._about_orders():
            return [], "any"
        return [], ""

    def _topics(self, place: int, part: Clause, scope: str) -> Topics | None:
        """What a clause asks; None where it only names what another clause asks about."""
        if part.topics or part.has("compare"):
            return self._with_also(part)
        if scope:
            return None if self._asked_later(place) else {"list": set()}
        if self.all_here and self.lexicon.ids["same"] & set(part.words):
            return self.all_here
        if self._asked_later(place) or (self.message.ids and not part.marks):
            return None
        before = self.thread.topics.items()
        return {t: f for t, f in before if t != "list" and not self.lexicon.is_general(t)} or DETAIL

    def _with_also(self, part: Clause) -> Topics:
        topics = part.topics
        if part.marks and topics.get("policy") == {"delivery"}:  # that of those orders
            topics = {"delivery": set(), **{n: f for n, f in topics.items() if n != "policy"}}
        known = {name: t.also for name, t in self.lexicon.topics.items() if name in topics}
        also = {known[name][f]: {f} for name in known for f in topics[name] if f in known[name]}
        return {**topics, **also, **topics}

    def _asked_later(self, place: int) -> bool:
        """Whether the next clause that asks anything asks it of the orders named here."""
        later = next((part for part in self.parts[place + 1 :] if part.asks), None)
        return later is not None and not later.marks and not later.has("scope")

    def _compared(self, part: Clause, ids: list[str], scope: str) -> list[str]:
        names = part.named("compare")
        if names == ["any"] and part.topics.get("order"):  # "the prices, compared"
            return []
        several = len(ids) > 1 or (not ids and not scope.startswith("nth"))
        if not names or not several:
            return []
        return sorted({"sum", "dates"} if "any" in names else set(names))

    # What it is about.

    def _general(self, topic: str) -> bool:
        """Whether a topic needs no order."""
        return topic.startswith("tool:") or self.lexicon.is_general(topic)

    def _about_orders(self) -> bool:
        speaks = (p.has("noun", "own", "scope") or (p.refers and p.topics) for p in self.parts)
        return bool(self.message.ids) or any(speaks)

    def _perhaps(self, part: Clause) -> bool:
        """Whether its strange word may be something ordered: "is the lamp shipped?"."""
        if part.has("topic"):
            return len(part.strange) < 2 or bool(self.lexicon.ids["nouns"] & set(part.words))
        return len(part.strange) == 1 and part.joint != ""
