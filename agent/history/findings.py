"""What is wrong with a history, by the rules of the API that it is for.

A result belongs to the nearest call of its id before it that has none yet, since ids may start
again with a later response.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agent.history.kinds import DIFFER, KINDS, Finding, shown
from agent.history.model import History, Message, Part
from agent.strict import NotStrictJson, parse_strictly
from agent.wire.names import ENDED, FITS

Progress = Callable[[int, int], None]  # messages so far, and of how many

LONGEST = 64  # characters of an id


@dataclass(eq=False)
class Response:
    """The calls that the model made together. last: the place of its last message.

    closed: a message behind it is not the model's. sealed: one of them is no result either.
    """

    last: int
    calls: list["Called"] = field(default_factory=list)
    closed: bool = False
    sealed: bool = False


@dataclass(eq=False)
class Called:
    """A call, with its own result. ambiguous: another call of its response has the same id.

    stood_in: a result under a foreign id stands where its own is missing.
    """

    part: Part
    place: int
    response: Response
    result: "Given | None" = None
    ambiguous: bool = False
    stood_in: bool = False


@dataclass(eq=False)
class Given:
    """A result. behind: the response that it stands directly behind, if any.

    kind: what is wrong with it. called: the call that it belongs to, or takes the place of.
    """

    part: Part
    place: int
    behind: Response | None
    kind: str = ""
    called: Called | None = None


@dataclass
class Examination:
    """One reading of a history, from its first message to its last."""

    history: History
    findings: list[Finding] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    results: list[Given] = field(default_factory=list)
    _responses: list[Response] = field(default_factory=list)
    _open: dict[str, list[Called]] = field(default_factory=dict)
    _answered: dict[str, Called] = field(default_factory=dict)

    def run(self, progress: Progress) -> "Examination":
        messages = self.history.messages
        for place, message in enumerate(messages):
            self._enter(message, place)
            for part in message.parts:
                if part.kind == "call":
                    self._call(part, place)
                elif part.kind == "result":
                    self._result(part, place)
                else:
                    self._seal(message)
            if not message.parts:
                self._seal(message)
            progress(place + 1, len(messages))
        self._settle_strays()
        self._name_unanswered()
        self.findings.sort(key=lambda finding: finding.index)
        return self

    def waits(self, called: Called) -> bool:
        """Whether it is of a response that is the document itself: its results are to come."""
        return self.history.response and called.response is self._current

    def _enter(self, message: Message, place: int) -> None:
        current = self._current
        if message.role != "assistant":
            if current:
                current.closed = True
        elif self.history.protocol == "responses" and current and not current.closed:
            current.last = place
        else:
            self._responses.append(Response(place))
        if message.role == "assistant" and message.ended not in ("", *ENDED):
            self._find("incomplete_response", place, message.path, other=message.ended)

    @property
    def _current(self) -> Response | None:
        return self._responses[-1] if self._responses else None

    def _seal(self, message: Message) -> None:
        if self._responses and message.role != "assistant":
            self._responses[-1].sealed = True

    def _call(self, part: Part, place: int) -> None:
        response = self._responses[-1]
        called = Called(part, place, response)
        again, waiting = part.id in self._open, self._open.setdefault(part.id, [])
        called.ambiguous = any(each.response is response for each in waiting)
        if not called.ambiguous:
            waiting.clear()
        for kind, other in self._wrong(called, again):
            self._find(kind, place, part.path, part.id, other)
        for each in (response.calls, self.calls, waiting):
            each.append(called)

    def _wrong(self, called: Called, again: bool) -> Iterator[tuple[str, str]]:
        part, messages = called.part, self.history.protocol == "messages"
        if not part.id:
            yield "empty_id", ""
        elif not FITS[self.history.protocol].fullmatch(part.id):
            yield ("id_too_long" if len(part.id) > LONGEST else "id_characters"), ""
        if again and part.id and (called.ambiguous or messages):
            yield "duplicate_id" if called.ambiguous else "repeated_id", ""
        if part.item_id and not part.item_id.startswith("fc") and part.form == "function":
            yield "call_id_as_item_id", part.item_id
        if part.form == "function" and not _is_object(part.arguments, text=not messages):
            yield "arguments_not_json", ""

    def _result(self, part: Part, place: int) -> None:
        current = self._current
        given = Given(part, place, current if current and not current.sealed else None)
        if not part.id:
            self._find("empty_id", place, part.path)
        if not current and self.history.chained and part.id not in self._answered:
            # The server has the call.
            self._answered[part.id] = Called(part, place, Response(place), given)
            return
        self.results.append(given)
        if waiting := self._open.get(part.id):
            called = waiting.pop(0)
            called.result, given.called, self._answered[part.id] = given, called, called
            self._name(given, self._apart(given, called))
        elif part.id in self._answered:
            given.called = self._answered[part.id]
            self._name(given, "duplicate_result")

    def _apart(self, given: Given, called: Called) -> str:
        if given.behind is not called.response:
            return "text_between"
        one = self.history.protocol == "messages"
        return "results_spread" if one and given.place > called.response.last + 1 else ""

    def _settle_strays(self) -> None:
        """Results that named no call when they came: a later one, an item, or none at all.

        One is put to a call only where no other call could be meant.
        """
        strays = [given for given in self.results if not given.called and given.part.id]
        for kind, name in (("result_before_call", "id"), ("item_id_as_call_id", "item_id")):
            times = Counter(getattr(called.part, name) for called in self.calls)
            found = {getattr(called.part, name): called for called in self.calls}
            for given in strays:
                if times[given.part.id] == 1 and not given.called:
                    given.called = called = found[given.part.id]
                    self._name(given, "duplicate_result" if called.result else kind)
                    called.result = called.result or given
        for given in strays:
            if not given.called:
                self._name_foreign(given)

    def _name_foreign(self, given: Given) -> None:
        waiting = given.behind.calls if given.behind else []
        given.called = next((c for c in waiting if not c.result and not c.stood_in), None)
        if given.called:
            given.called.stood_in = True
        self._name(given, "mismatched_id" if given.called else "orphan_result")

    def _name_unanswered(self) -> None:
        for called in self.calls:
            if not (called.result or called.stood_in or self.waits(called)) and called.part.id:
                self._find("missing_result", called.place, called.part.path, called.part.id)

    def _name(self, given: Given, kind: str) -> None:
        if kind:
            other = given.called.part.id if given.called else ""
            given.kind = kind
            self._find(kind, given.place, given.part.path, given.part.id, other)

    def _find(self, kind: str, index: int, path: str, id_: str = "", other: str = "") -> None:
        message = KINDS[kind].problem.format(id=shown(id_), other=shown(other))
        vendors = DIFFER.get((kind, self.history.protocol), "")
        self.findings.append(Finding(kind, index, path, id_, message, vendors, other))


def _is_object(arguments: object, *, text: bool) -> bool:
    """An object in Messages, which was read strictly with all the rest; else the text of one."""
    if not text or not isinstance(arguments, str):
        return not text and isinstance(arguments, dict)
    try:
        parse_strictly(arguments)
    except NotStrictJson:
        return False
    return True
