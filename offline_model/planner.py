"""The next step of a conversation: the calls that are still needed, or the answer."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from offline_model.answering import Situation, final_text
from offline_model.conversation import (
    Asked,
    Call,
    Conversation,
    Step,
    Tool,
    Turn,
    Wanted,
    key,
    rows,
)
from offline_model.lexicon import lexicon, spoken
from offline_model.matching import Toolbox
from offline_model.reading import Ask, Reading, read
from offline_model.repair import repaired
from offline_model.thread import Thread, part_of, unique
from offline_model.writes import Writes, complete

REMEMBERED = 12  # turns that are read again; nobody refers further back
MOST = 20  # orders of a listing that are looked up one by one


def plan(conversation: Conversation) -> Step:
    """What a model would do next: calls in the order they were asked for, or its final text."""
    planner = Planner(conversation)
    calls = () if conversation.choice == "none" else planner.calls()
    if calls:
        asked = tuple(Asked(*each) for each in calls)
        return Step(calls=asked if conversation.parallel else asked[:1])
    return Step(text=final_text(planner.situation()))


class Planner:
    """Reads a conversation from its beginning and plans its last turn."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation, self.lexicon = conversation, lexicon("en")
        self.toolbox = Toolbox(conversation.tools, self.lexicon)  # they are described in English
        self.turn = conversation.turns[-1]
        self.spoken_of: list[str] = []
        self.reading = self._read()
        self.writes = Writes(
            conversation, self.toolbox, self.lexicon, self.reading, self.spoken_of, self._selected
        )

    def calls(self) -> tuple[Wanted, ...]:
        """The calls that are still open: wanted, and not made in this turn."""
        made = [key(call.name, call.given) for call in self.turn.calls]
        wanted = (*self._wanted(), *repaired(self.turn))
        fresh = {key(*each): each for each in wanted if key(*each) not in made}
        return tuple(fresh.values()) or self._forced()

    def situation(self) -> Situation:
        return Situation(
            self.conversation,
            self.lexicon,
            self.reading,
            facets={call.call_id: self._facets(call) for call in self.turn.calls},
            left_out=self._stepping_stones(),
            stuck=not any(self._tool(ask) for ask in self.reading.asks),
            lost=any(_by_item(ask) and not self._holding(ask) for ask in self.reading.asks),
            lacking=self.writes.lacking(),
            deeds=self.writes.tools,
        )

    # Reading.

    def _read(self) -> Reading:
        marks, thread, reading = self.toolbox.marks(), Thread(), Reading()
        offered = self.toolbox.deeds()
        for turn in self.conversation.turns[-REMEMBERED:]:
            if languages := spoken(turn.text):
                self.lexicon = lexicon(*languages)
            before, reading = reading, read(turn.text, thread, self.lexicon, marks, offered)
            complete(reading, before.deeds, turn.text, offered)
            self.spoken_of += [i for ask in reading.asks for i in ask.ids]
            self.spoken_of += [i for deed in reading.deeds for i in deed.ids]
            reading.unread = not languages and reading.unread
            if turn is not self.turn and not any(ask.ids for ask in reading.asks):
                self._recall(turn, thread)
        self.lexicon = lexicon("en") if reading.unread else self.lexicon
        return reading

    def _recall(self, turn: Turn, thread: Thread) -> None:
        """What the turn's calls put before the customer, to refer to later."""
        asked = unique(i for call in turn.calls for i in call.subjects)
        shown = asked or unique(_row_id(row) for call in turn.calls for row in rows(call.data))
        if shown:
            thread.named = thread.focus = thread.lately = shown

    # Planning.

    def _wanted(self) -> Iterator[Wanted]:
        for ask in self.reading.asks:
            yield from self._steps(ask)
            yield from self._answers(ask)
        yield from self.writes.calls()

    def _steps(self, ask: Ask) -> list[Wanted]:
        """What finds the orders that an ask is about, where it does not name them."""
        listing = self.toolbox.for_topic("list") if ask.scope else None
        found = self.toolbox.calls(listing, [], self.turn.text)
        return [*found, *(self._looked_up(Ask("order", (), "all")) if _by_item(ask) else ())]

    def _answers(self, ask: Ask) -> Iterable[Wanted]:
        if _by_item(ask):
            ids = self._holding(ask)
            return self._looked_up(replace(ask, ids=ids, scope="")) if ids else ()
        listed = ask.topic == "list" and not _single(ask.scope)
        if listed or (ask.scope and self._told(ask)):
            return self.toolbox.calls(self.toolbox.for_topic("list"), [], self.turn.text)
        return self._looked_up(replace(ask, topic="order") if ask.topic == "list" else ask)

    def _looked_up(self, ask: Ask) -> Iterator[Wanted]:
        ids = [i for i in ask.ids or self._selected(ask) if i not in self.reading.excluded]
        tool = self._tool(ask)
        if tool is None and ask.topic == "compare":
            for stand_in in _parts_of(ask):
                yield from self._looked_up(stand_in)
        elif ids or not (ask.ids or ask.scope):
            topic = self.lexicon.topics.get(ask.topic)
            for choice in sorted(ask.facets) if topic and topic.general else [self.turn.text]:
                yield from self.toolbox.calls(tool, ids, choice)

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
        return list(rows(listing.data)) if listing else []

    def _told(self, ask: Ask) -> bool:
        """Whether the listing itself has all that was asked."""
        topic, found = self.lexicon.topics.get(ask.topic), self._rows()
        if topic is None or not found or _single(ask.scope):
            return not found
        fields = {field for facet in ask.facets for field in topic.answers.get(facet, ["?"])}
        return bool(topic.answers) and fields <= set(found[0])

    def _selected(self, ask: Ask) -> list[str]:
        """The ids of the listed orders that an ask means."""
        found, scope = self._rows(), ask.scope
        closed = self.lexicon.data["statuses"]["closed"]
        waiting = [row for row in found if str(row.get("status")) not in closed]
        if scope.startswith("nth:"):
            found = sorted(found, key=_dated)[part_of(scope.removeprefix("nth:"))]
        elif scope.startswith("status:"):
            found = [row for row in found if row.get("status") in scope.split(":")]
        elif scope == "open" or (scope in ("any", "plural") and _to_come(ask)):
            found = waiting or found
        return [row_id for row in found[:MOST] if (row_id := _row_id(row))]

    def _holding(self, ask: Ask) -> tuple[str, ...]:
        """The orders looked up in this turn whose items have the most of an ask's words."""
        words = ask.scope.removeprefix("item:").split()
        found: dict[int, list[str]] = {}
        for call in self.turn.calls:
            items = json.dumps(list(rows(call.data)), ensure_ascii=False).lower()
            count = sum((word.rstrip("s") or word) in items for word in words)
            found.setdefault(count, []).extend(call.subjects)
        best = max(found, default=0)
        return tuple(unique(found[best])) if best else ()

    def _forced(self) -> tuple[Wanted, ...]:
        """A call that the request insists on, though nothing asks for it."""
        choice = self.conversation.choice
        if choice == "auto" or self.turn.calls:
            return ()
        ids = unique(i for ask in self.reading.asks for i in ask.ids) or ["unknown"]
        named = [tool for tool in self.conversation.tools if choice in ("required", tool.name)]
        calls = (self.toolbox.calls(tool, ids, self.turn.text) for tool in named)
        return tuple(next(filter(None, calls), ()))

    # For the answer.

    def _facets(self, call: Call) -> frozenset[str]:
        subjects = set(call.subjects)
        asked = [ask for ask in self.reading.asks if not ask.ids or set(ask.ids) & subjects]
        fitting = [ask for ask in asked if (tool := self._tool(ask)) and tool.name == call.name]
        return frozenset(facet for ask in fitting for facet in ask.facets)

    def _stepping_stones(self) -> list[str]:
        """The calls that only served to find orders; the listing counts where nothing else came."""
        asks, calls = self.reading.asks, self.turn.calls
        answers = {key(*each) for ask in asks for each in self._answers(ask)}
        steps = {key(*each) for ask in asks for each in self._steps(ask)} - answers
        if any(call.name in self.writes.tools for call in calls):
            wanted = [each for each in self.writes.calls() if each[0] not in self.writes.tools]
            steps |= {key(*each) for each in wanted} - answers
        stones = [call for call in calls if key(call.name, call.given) in steps]
        found = [call for call in stones if call is not self._listing() or len(stones) < len(calls)]
        return [call.call_id for call in found]


def _single(scope: str) -> bool:
    """Whether a scope picks some out of the listing."""
    return scope.startswith(("nth", "status"))


def _by_item(ask: Ask) -> bool:
    return ask.scope.startswith("item:")


def _to_come(ask: Ask) -> bool:
    return ask.topic == "delivery" or ask.facets == {"dates"}


def _parts_of(ask: Ask) -> list[Ask]:
    """A comparison without its tool: the single orders."""
    topics = {"sum": "order", "dates": "delivery"}
    groups: list[tuple[str, ...]] = [(i,) for i in ask.ids] or [()]
    return [Ask(topics[kind], group, ask.scope) for kind in ask.facets for group in groups]


def _row_id(row: dict[str, Any]) -> str:
    return next((str(row[key]) for key in row if key == "id" or key.endswith("_id")), "")


def _dated(row: dict[str, Any]) -> str:
    """The first value of a row that reads like a date: ISO dates sort as text."""
    texts = (value for value in row.values() if isinstance(value, str))
    return next((text for text in texts if text[4:5] == "-" and text[:4].isdigit()), "")
