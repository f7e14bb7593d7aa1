"""The next step of a conversation: the calls that are still needed, or the answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from offline_model.answering import final_text
from offline_model.conversation import Call, Conversation, Step, Tool, Turn, rows
from offline_model.ids import mark_ids
from offline_model.lexicon import Lexicon, english
from offline_model.matching import Toolbox
from offline_model.reading import Ask, Reading, Thread, part_of, read
from offline_model.repair import repaired
from offline_model.tokens import tokens

REMEMBERED = 12  # turns that are read again; nobody refers further back
MOST = 20  # orders of a listing that are looked up one by one

Wanted = tuple[str, dict[str, Any]]


def plan(conversation: Conversation) -> Step:
    """What a model would do next: calls in the order they were asked for, or its final text."""
    planner = Planner(conversation, english())
    calls = () if conversation.choice == "none" else planner.calls()
    if calls:
        return Step(calls=calls if conversation.parallel else calls[:1])
    return Step(text=final_text(planner.situation()))


@dataclass(frozen=True)
class Situation:
    """All that the final text depends on.

    `facets` are what was asked of each call; `left_out` are calls that only served to find others.
    `able` is whether an offered tool does the deed that is wanted, and tells what is no order's;
    `stuck` that no offered tool tells anything of what was asked.
    """

    conversation: Conversation
    lexicon: Lexicon
    reading: Reading
    facets: dict[str, frozenset[str]]
    left_out: list[str]
    stuck: bool
    able: bool


@dataclass
class Planner:
    """Reads a conversation from its beginning and plans its last turn."""

    conversation: Conversation
    lexicon: Lexicon
    toolbox: Toolbox = field(init=False)
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        self.toolbox = Toolbox(self.conversation.tools, self.lexicon)
        self.reading = self._read()

    @property
    def turn(self) -> Turn:
        return self.conversation.turns[-1]

    def calls(self) -> tuple[Wanted, ...]:
        """The calls that are still open: wanted, and not made in this turn."""
        made = [_key(call.name, call.given) for call in self.turn.calls]
        fresh = {}
        for name, arguments in (*self._wanted(), *repaired(self.turn, self.toolbox)):
            if _key(name, arguments) not in made:
                fresh[_key(name, arguments)] = (name, arguments)
        return tuple(fresh.values()) or self._forced()

    def situation(self) -> Situation:
        return Situation(
            self.conversation,
            self.lexicon,
            self.reading,
            facets={call.call_id: self._facets(call) for call in self.turn.calls},
            left_out=self._stepping_stones(),
            stuck=not any(self._tool(ask) for ask in self.reading.asks),
            able=self._able(),
        )

    # Reading.

    def _read(self) -> Reading:
        marks, thread, reading = self.toolbox.marks(), Thread(), Reading()
        for turn in self.conversation.turns[-REMEMBERED:]:
            reading = read(turn.text, thread, self.lexicon, marks)
            if turn is not self.turn:
                self._recall(turn, thread, bool(reading.asks) and any(a.ids for a in reading.asks))
        return reading

    def _recall(self, turn: Turn, thread: Thread, named: bool) -> None:
        """What the turn's calls and answers put before the customer, to refer to later."""
        said = " ".join(turn.answers)
        thread.mentioned = _unique(
            token.order_id or ""
            for token in mark_ids(tokens(said, self.lexicon), self.lexicon)
            if token.order_id
        )
        asked = _unique(i for call in turn.calls for i in _subjects(call))
        shown = asked or _unique(i for call in turn.calls for i in _row_ids(call))
        shown = shown or (thread.mentioned if turn.calls or _lists(thread) else [])
        if not named and shown:
            thread.named = thread.focus = shown

    # Planning.

    def _wanted(self) -> Iterator[Wanted]:
        deed = self._deed()
        if deed is not None:
            yield from deed
        for ask in self.reading.asks:
            yield from self._planned(ask)

    def _planned(self, ask: Ask) -> Iterator[Wanted]:
        if ask.topic == "list" or (ask.scope and self._listing() is None):
            yield from self._listed()
            if ask.topic == "list" and _single(ask.scope):
                yield from self._looked_up(Ask("order", (), ask.scope))
        elif not (ask.scope and self._told(ask)):
            yield from self._looked_up(ask)

    def _listed(self) -> Iterator[Wanted]:
        tool = self.toolbox.for_topic("list")
        if tool is not None and self._listing() is None:
            yield tool.name, {}

    def _looked_up(self, ask: Ask) -> Iterator[Wanted]:
        ids = [i for i in ask.ids or self._selected(ask) if i not in self.reading.excluded]
        tool = self._tool(ask)
        if tool is None and ask.topic == "compare":
            for stand_in in _parts_of(ask):
                yield from self._looked_up(stand_in)
        elif tool is not None and (ids or not (ask.ids or ask.scope)):
            for arguments in self.toolbox.arguments(tool, ids, self.turn.text):
                yield tool.name, arguments

    def _tool(self, ask: Ask) -> Tool | None:
        tool = self.toolbox.for_topic(ask.topic, ask.facets)
        if tool is None and ask.ids and ask.topic != "compare":
            return self.toolbox.for_topic("order", ask.facets if ask.topic == "order" else ())
        return tool

    def _listing(self) -> Call | None:
        """This turn's listing, once it has a result."""
        tool = self.toolbox.for_topic("list")
        calls = [call for call in self.turn.calls if tool and call.name == tool.name]
        return calls[-1] if calls else None

    def _rows(self) -> list[dict[str, Any]]:
        listing = self._listing()
        return list(rows(listing.data)) if listing and listing.data else []

    def _told(self, ask: Ask) -> bool:
        """Whether the listing itself has all that was asked."""
        topic = self.lexicon.topics.get(ask.topic)
        found = self._rows()
        if topic is None or not found or _single(ask.scope):
            return not found
        fields = [field for facet in ask.facets for field in topic.answers.get(facet, ["?"])]
        return bool(topic.answers) and set(fields) <= set(found[0])

    def _selected(self, ask: Ask) -> list[str]:
        """The ids of the listed orders that an ask means."""
        found, scope = self._rows(), ask.scope
        closed = self.lexicon.data["statuses"]["closed"]
        waiting = [row for row in found if str(row.get("status")) not in closed]
        if scope in ("newest", "oldest"):
            ordered = sorted(found, key=_dated)
            found = ordered[-1:] if scope == "newest" else ordered[:1]
        elif scope.startswith("nth:"):
            found = found[part_of(scope.removeprefix("nth:"))]
        elif scope == "open" or (scope in ("any", "plural") and ask.topic == "delivery"):
            found = waiting or found
        return [row_id for row in found[:MOST] if (row_id := _row_id(row))]

    def _deed(self) -> list[Wanted] | None:
        """The calls of a write that is wanted; None where nothing offered can do it."""
        tool = self.toolbox.for_request(self.reading.request) if self.reading.request else None
        if tool is None:
            return None
        ids = _unique(i for ask in self.reading.asks for i in ask.ids)
        return [(tool.name, given) for given in self.toolbox.arguments(tool, ids, self.turn.text)]

    def _able(self) -> bool:
        if self.reading.request and self._deed() is None:
            return False
        topics = self.lexicon.topics
        general = [a for a in self.reading.asks if a.topic in topics and topics[a.topic].general]
        return all(self.toolbox.for_topic(ask.topic) for ask in general)

    def _forced(self) -> tuple[Wanted, ...]:
        """A call that the request insists on, though nothing asks for it."""
        choice = self.conversation.choice
        if choice == "auto" or self.turn.calls:
            return ()
        named = [tool for tool in self.conversation.tools if choice in ("required", tool.name)]
        ids = _unique(i for ask in self.reading.asks for i in ask.ids) or ["unknown"]
        filled = ((t, self.toolbox.arguments(t, ids, self.turn.text)) for t in named)
        return next((tuple((t.name, one) for one in given) for t, given in filled if given), ())

    # For the answer.

    def _facets(self, call: Call) -> frozenset[str]:
        subjects = _subjects(call)
        asked = [a for a in self.reading.asks if (tool := self._tool(a)) and tool.name == call.name]
        fitting = [ask for ask in asked if not ask.ids or set(ask.ids) & set(subjects)]
        return frozenset(facet for ask in fitting for facet in ask.facets)

    def _stepping_stones(self) -> list[str]:
        listing = self._listing()
        scoped = [ask for ask in self.reading.asks if ask.scope]
        wanted = any(
            (ask.topic == "list" and not _single(ask.scope)) or self._told(ask) for ask in scoped
        )
        alone = all(call is listing for call in self.turn.calls)
        return [] if listing is None or wanted or alone else [listing.call_id]


def _single(scope: str) -> bool:
    """Whether a scope picks some out of the listing."""
    return scope.startswith(("newest", "oldest", "nth"))


def _parts_of(ask: Ask) -> list[Ask]:
    """A comparison without its tool: the single orders."""
    topics = {"sum": "order", "dates": "delivery"}
    return [Ask(topics[kind], (i,), ask.scope) for kind in ask.facets for i in ask.ids] or [
        Ask(topics[kind], (), ask.scope) for kind in ask.facets
    ]


def _key(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def _unique(ids: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _subjects(call: Call) -> list[str]:
    values = [v for v in call.given.values() if isinstance(v, str | list)]
    return [str(i) for value in values for i in ([value] if isinstance(value, str) else value)]


def _row_id(row: dict[str, Any]) -> str:
    key = next((key for key in row if key == "id" or key.endswith("_id")), None)
    return str(row[key]) if key else ""


def _row_ids(call: Call) -> Iterator[str]:
    return (row_id for row in rows(call.data or {}) if (row_id := _row_id(row)))


def _dated(row: dict[str, Any]) -> str:
    """The first value of a row that reads like a date: ISO dates sort as text."""
    texts = (value for value in row.values() if isinstance(value, str))
    return next((text for text in texts if text[4:5] == "-" and text[:4].isdigit()), "")


def _lists(thread: Thread) -> bool:
    return "list" in thread.topics
