"""What is wrong with a history, by the rules of the API that it is for.

A result belongs to the nearest call of its id before it that has none yet, since ids may start
again with a later response.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from agent.history.kinds import DIFFER, KINDS, Finding, shown
from agent.history.model import History, Message, Part
from agent.strict import SEAL, sealed
from agent.wire.names import ENDED, FITS, OPENAI

Progress = Callable[[int, int], None]  # messages so far, and of how many


@dataclass(eq=False)
class Response:
    """The calls that the model made together.

    last: the place of its last message. sealed: something behind it is no result.
    """

    last: int
    calls: list["Placed"] = field(default_factory=list)
    sealed: bool = False


@dataclass(eq=False)
class Placed:
    """A call or a result. response: whose call it is, or directly behind whose a result stands.

    mate: a call's own result; the call that a result belongs to, or takes the place of.
    wrong: the kind of what is wrong with a result. stood_in: a result under a foreign id stands
    where a call's own is missing. ambiguous: another call of its response has the same id.
    """

    part: Part
    place: int
    response: Response | None
    mate: "Placed | None" = None
    wrong: str = ""
    stood_in: bool = False
    ambiguous: bool = False


@dataclass
class Examination:
    """One reading of a history, from its first message to its last."""

    history: History
    findings: list[Finding] = field(default_factory=list)
    calls: list[Placed] = field(default_factory=list)
    results: list[Placed] = field(default_factory=list)
    _current: Response | None = None  # the newest
    _refers: bool = False  # whether an item before stands for one that the server has
    _open: dict[str, list[Placed]] = field(default_factory=dict)
    _answered: dict[str, Placed] = field(default_factory=dict)

    def run(self, progress: Progress | None = None) -> "Examination":
        for place, message in enumerate(self.history.messages):
            self._enter(message, place)
            for part in message.parts:
                if part.kind == "call":
                    self._call(Placed(part, place, self._current))
                elif part.kind == "result":
                    self._result(part, place)
                elif message.role != "assistant" and self._current:
                    self._current.sealed = True
                self._refers |= part.kind == "other" and part.raw.get("type") == "item_reference"
            if progress:
                progress(place + 1, len(self.history.messages))
        self._settle_strays()
        for call in self.calls:
            if not (call.mate or call.stood_in or self.waits(call)) and call.part.id:
                self._find("missing_result", call.place, call.part)
        self.findings.sort(key=attrgetter("index"))
        return self

    def waits(self, call: Placed) -> bool:
        """Whether it is of a response that is the document itself: its results are to come."""
        return self.history.response and call.response is self._current

    def _enter(self, message: Message, place: int) -> None:
        current = self._current
        if message.role != "assistant":
            if current and not message.parts:
                current.sealed = True
            return
        if self.history.protocol == "responses" and current and current.last == place - 1:
            current.last = place
        else:
            self._current = Response(place)
        if message.ended not in ("", *ENDED):
            about = Part("other", message.path, message.raw)
            self._find("incomplete_response", place, about, message.ended)

    def _call(self, call: Placed) -> None:
        again, waiting = call.part.id in self._open, self._open.setdefault(call.part.id, [])
        call.ambiguous = bool(waiting) and waiting[-1].response is call.response
        if call.ambiguous:
            waiting[0].ambiguous = True
        else:
            waiting.clear()
        for kind, other in self._wrong(call, again):
            self._find(kind, call.place, call.part, other)
        waiting.append(call)
        self.calls.append(call)
        if call.response:
            call.response.calls.append(call)

    def _wrong(self, call: Placed, again: bool) -> Iterator[tuple[str, str]]:
        part, protocol = call.part, self.history.protocol
        if not part.id:
            yield "empty_id", ""
        elif not FITS[protocol].fullmatch(part.id):
            yield ("id_characters" if OPENAI.fullmatch(part.id) else "id_too_long"), ""
        if again and part.id and (call.ambiguous or protocol == "messages"):
            yield "duplicate_id" if call.ambiguous else "repeated_id", ""
        if part.item_id and not part.item_id.startswith("fc") and part.form == "function":
            yield "call_id_as_item_id", part.item_id
        if part.form == "function" and not _is_object(part.arguments, text=protocol != "messages"):
            yield "arguments_not_json", ""

    def _result(self, part: Part, place: int) -> None:
        current = self._current
        result = Placed(part, place, current if current and not current.sealed else None)
        if not part.id:
            self._find("empty_id", place, part)
        waiting = self._open.get(part.id)
        is_known = part.id in self._open or part.id in self._answered
        if not is_known and (self._refers or (self.history.chained and not current)):
            self._answered[part.id] = Placed(part, place, None, result)  # the server has the call
            return
        self.results.append(result)
        if waiting:
            call = self._answered[part.id] = waiting.pop(0)
            call.mate = result
            self._name(result, call, self._apart(result, call))
        elif part.id in self._answered:
            self._name(result, self._answered[part.id], "duplicate_result")

    def _apart(self, result: Placed, call: Placed) -> str:
        if result.response is not call.response:
            return "text_between"
        is_spread = result.response and result.place > result.response.last + 1
        return "results_spread" if is_spread and self.history.protocol == "messages" else ""

    def _settle_strays(self) -> None:
        """Results that named no call when they came: a later one, an item, or none at all.

        One is put to a call only where no other call could be meant.
        """
        strays = [result for result in self.results if not result.mate and result.part.id]
        for kind, name in (
            ("result_before_call", "part.id"),
            ("item_id_as_call_id", "part.item_id"),
        ):
            times = Counter(map(attrgetter(name), self.calls))
            found = {attrgetter(name)(call): call for call in self.calls}
            for result in strays:
                if times[result.part.id] == 1 and not result.mate:
                    call = found[result.part.id]
                    self._name(result, call, "duplicate_result" if call.mate else kind)
                    call.mate = call.mate or result
        for result in strays:
            if not result.mate:
                waiting = result.response.calls if result.response else []
                while waiting and (waiting[0].mate or waiting[0].stood_in):
                    waiting.pop(0)
                stands = waiting[0] if waiting else None
                self._name(result, stands, "mismatched_id" if stands else "orphan_result")
                if stands:
                    stands.stood_in = True

    def _name(self, result: Placed, call: Placed | None, kind: str) -> None:
        result.mate, result.wrong = call, kind
        if kind:
            self._find(kind, result.place, result.part, call.part.id if call else "")

    def _find(self, kind: str, index: int, part: Part, other: str = "") -> None:
        message = KINDS[kind].format(id=shown(part.id), other=shown(other))
        vendors = DIFFER.get((kind, self.history.protocol), "")
        self.findings.append(Finding(kind, index, part.path, part.id, message, vendors, other))


def _is_object(arguments: object, *, text: bool) -> bool:
    """An object in Messages, which was read strictly with all the rest; else the text of one."""
    if text:
        return isinstance(arguments, str) and SEAL not in sealed(arguments)
    return isinstance(arguments, dict)
