"""The calls of the deeds that are wanted, with all that their tools ask for."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from offline_model.amounts import SOME
from offline_model.conversation import Call, Conversation, Tool, Wanted, key
from offline_model.deeds import LONGEST, Deed, printable, reason
from offline_model.lexicon import Lexicon
from offline_model.matching import Toolbox
from offline_model.reading import Ask, Reading
from offline_model.thread import unique

UNDONE = {"rejected", "not_executed"}  # errors of what was taken back, or never begun


def complete(reading: Reading, before: Sequence[Deed], text: str, offered: Collection[str]) -> None:
    """Takes a message as the answer to what was missing, or as the wish for the same once more."""
    _once_more(reading, before)
    if reading.deeds or (reading.asks and not reading.named):
        return
    told = {} if reading.named or not _is_address(text) else {"address": printable(text)}
    for deed in (deed for deed in before if deed.kind in offered):
        if reading.named and not (deed.ids or chooses(deed) or deed.kind == "person"):
            several = deed.kind == "refund" and deed.given and len(reading.named) > 1
            given = SOME if several else deed.given
            reading.deeds.append(replace(deed, ids=tuple(reading.named), given=given))
        elif told and deed.kind == "change" and deed.ids and not deed.given:
            reading.deeds.append(replace(deed, given=told))
    reading.asks = [] if reading.deeds else reading.asks


def _once_more(reading: Reading, before: Sequence[Deed]) -> None:
    """Takes what a message leaves unsaid from the deeds of the turn before."""
    refunds = [deed for deed in before if deed.kind == "refund"]
    if reading.anew and len(refunds) == 1 and reading.deeds == [replace(refunds[0], given={})]:
        reading.deeds = refunds
    elif reading.sums and refunds and not reading.deeds:
        if reading.anew or any(deed.given == SOME for deed in refunds):
            reading.deeds, reading.asks = reading.sums, []
    elif reading.only_anew:
        reading.deeds, reading.asks = list(before), [] if before else reading.asks


def _is_address(text: str) -> bool:
    return bool(re.search(r"(?<![\w-])\d", text)) and "?" not in text and len(text.split()) > 1


def chooses(deed: Deed) -> bool:
    """Whether the orders of a deed are found in the listing."""
    picks = deed.scope.startswith(("nth", "status")) or deed.scope in ("all", "open")
    return picks and not deed.ids


@dataclass(frozen=True)
class Writes:
    """`spoken_of` are the orders of the conversation; `selected` finds those of a listing."""

    conversation: Conversation
    toolbox: Toolbox
    lexicon: Lexicon
    reading: Reading
    spoken_of: Sequence[str]
    selected: Callable[[Ask], list[str]]

    @cached_property
    def tools(self) -> frozenset[str]:
        return frozenset(self.toolbox.deeds().values())

    def calls(self) -> Iterator[Wanted]:
        """The writes that are wanted, and the reads that they need first.

        A yes and nothing more is to what was taken back in the turn before.
        """
        for deed in self.reading.deeds:
            if tool := self.toolbox.for_request(deed.kind):
                yield from self._calls(deed, tool)
        if self.reading.again and not (self.reading.asks or self.reading.deeds):
            yield from ((call.name, call.given) for call in self._undone)

    def lacking(self) -> list[str]:
        """The sentences on what nothing can do, and on what has to be asked back."""
        return unique(filter(None, map(self._missing, self.reading.deeds)))

    def _missing(self, deed: Deed) -> str:
        tool = self.toolbox.for_request(deed.kind)
        if tool is None:
            return f"not_{deed.kind}"
        if deed.kind != "person" and not self._meant(deed):
            return "which"
        if deed.given == SOME:
            return "need_each" if len(self._meant(deed)) > 1 else "need_refund"
        return "" if list(self._calls(deed, tool)) else f"need_{deed.kind}"

    def _calls(self, deed: Deed, tool: Tool) -> Iterator[Wanted]:
        if deed.kind == "person":
            yield from self.toolbox.calls(tool, [], given={"summary": self._summary()})
            return
        if chooses(deed):
            yield from self.toolbox.calls(self.toolbox.for_topic("list"), [])
        for order_id in self._meant(deed):
            yield from self._calls_for(order_id, deed, tool)

    def _meant(self, deed: Deed) -> list[str]:
        topic = "order" if deed.kind == "refund" else "delivery"  # one that is still to come
        scope = "plural" if deed.scope == "all" else deed.scope
        found = self.selected(Ask(topic, scope=scope)) if chooses(deed) else deed.ids
        return [order_id for order_id in found if order_id not in self.reading.excluded]

    def _calls_for(self, order_id: str, deed: Deed, tool: Tool) -> list[Wanted]:
        """The write of one order; before it the look at the order that tells what was not said.

        With nothing new said, it is the write that was taken back just before.
        """
        same = [c for c in self._undone if c.name == tool.name and order_id in c.subjects]
        if same and not deed.given:
            return [(tool.name, same[0].given)]
        why = reason(self.conversation.turns[-1].text, order_id, self.lexicon)
        calls = self.toolbox.calls(tool, [order_id], given=deed.given | {"reason": why})
        if calls or deed.kind != "refund" or deed.given == SOME:
            return calls
        looks = self.toolbox.calls(self.toolbox.for_topic("order"), [order_id])
        order = self._result(looks)
        whole = {
            "amount": str(order.get("total") or ""),
            "currency": str(order.get("currency") or ""),
        }
        given = whole | deed.given | {"reason": why}
        return looks + self.toolbox.calls(tool, [order_id], given=given)

    def _result(self, looks: Sequence[Wanted]) -> dict[str, object]:
        keys = [key(*look) for look in looks]
        calls = self.conversation.turns[-1].calls
        found = [call.data for call in calls if key(call.name, call.given) in keys]
        return (found[-1] if found else None) or {}

    @cached_property
    def _undone(self) -> list[Call]:
        """The writes of the turn before that were taken back or never begun."""
        calls = [call for turn in self.conversation.turns[-2:-1] for call in turn.calls]
        errors = [(call, call.error or {}) for call in calls if call.name in self.tools]
        return [call for call, error in errors if error.get("kind") in UNDONE]

    def _summary(self) -> str:
        """One paragraph for a person: what the customer wrote, and the orders it was about."""
        words = printable(" / ".join(turn.text for turn in self.conversation.turns))[-LONGEST:]
        told, ids = self.lexicon.data["writes"], ", ".join(unique(self.spoken_of))
        wrote, orders = told["wrote"].format(words), told["orders"].format(ids)
        return f"{wrote} {orders}" if ids else wrote
