"""Which results of a turn the answer speaks of, and which one a model's card means."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.calls import ToolCall, ToolResult, key_of
from agent.state import Results
from tools.locales import plainly
from tools.tool import Tool

# A JSON string and what ends it: `":` a key, `"` a value, nothing where the text was cut off.
JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("\s*:|"|$)')
_canonical = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True)
class Record:
    """A call of this turn with its result; `place` is its position in the turn."""

    place: int
    call: ToolCall
    result: ToolResult

    @property
    def ok(self) -> bool:
        return self.result["status"] == "ok"

    @property
    def ran(self) -> bool:
        return self.ok or self.result["error"]["kind"] not in ("not_executed", "not_kept")


def records(calls: Sequence[ToolCall], results: Results) -> list[Record]:
    """The turn's calls that have a result, in the order the model asked."""
    return [
        Record(place, call, result)
        for place, call in enumerate(calls)
        if (result := results.get(key_of(call)))
    ]


class Spoken:
    """The records that need a card: the newest of equal reads, every write, every open failure.

    A read that never ran is older than an equal one that did.
    """

    def __init__(self, all_records: Sequence[Record], tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._all = all_records
        newest: dict[str, Record] = {}
        for record in all_records:
            same = self._same(record)
            if record.ran or same not in newest or not newest[same].ran:
                newest[same] = record
        self._newest = newest
        self.records = [record for record in newest.values() if not self._made_good(record)]

    def find(self, call_id: str) -> Record | None:
        """What a card with this id speaks of; where ids repeat, the newest round counts.

        The wire names a call by its round too, where it had to send another id.
        """
        for record in reversed(self._all):
            if call_id in (record.call["call_id"], key_of(record.call)):
                counted = self._newest[self._same(record)]
                return counted if counted in self.records else None
        return None

    def _same(self, record: Record) -> str:
        """What makes two calls one in the answer: the same read. A write is always itself."""
        tool = self._tools.get(record.result["tool"])
        if tool is not None and tool.writes:
            return key_of(record.call)
        return _canonical([record.result["tool"], record.result["arguments"]])

    def _made_good(self, record: Record) -> bool:
        """Whether later calls of the same tool were ok about all that a failed one was about."""
        if record.ok:
            return False
        later = [r.result for r in self._all if r.ok and r.place > record.place]
        good = [result for result in later if result["tool"] == record.result["tool"]]
        if not (about := _about(record.result)):
            return any(result["arguments"] == record.result["arguments"] for result in good)
        return about <= {_plain_id(result["subject"]) for result in good}


def _about(failed: ToolResult) -> set[str]:
    """What a failed call was about. One that was never validated tells it in its raw arguments."""
    arguments = failed["arguments"]
    if failed["subject"]:
        named = [failed["subject"]]
    elif failed["error"]["kind"] != "invalid_arguments":
        named = []
    else:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        named = [name for name, end in JSON_STRING.findall(text) if not end.endswith(":")]
    return {_plain_id(name) for name in named}


def _plain_id(subject: str) -> str:
    return "".join(plainly(subject).split())
