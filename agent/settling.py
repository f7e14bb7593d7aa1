"""What is open when a turn begins: calls of one that was broken off, and writes not finished yet.

The former are closed, so that the history is whole; of the latter the model and the customer are
told what became of them since.
"""

from dataclasses import dataclass
from typing import cast

from agent.calls import ToolCall, ToolResult, key_of
from agent.journal import ThreadJournal, UnkeptThread
from agent.ledger import NOT_BEGUN, Ledger
from agent.ledger_records import told
from agent.messages import telling
from agent.perform import Performer, of_record, same, unperformed, write_of, written
from agent.state import Results
from agent.turn import Turn
from agent.writing import WITHDRAWN, awaits, place

NOT_KEPT = "The turn was broken off before this result was kept. Nothing was changed."


@dataclass(frozen=True)
class Settler:
    """ledger: None for a graph that does not write."""

    performer: Performer
    ledger: Ledger | None

    async def close(self, turn: Turn, journal: ThreadJournal | UnkeptThread, fence: str) -> None:
        """Gives every call of a turn that was broken off its one result.

        Whoever is still at it writes nothing more from here on: what is said to be withdrawn is.
        """
        if not turn.left:
            return
        if self.ledger and isinstance(journal, ThreadJournal):
            await self.ledger.begin_turn(journal.thread, fence)
        kept: Results = {**await journal.results(turn.left_in, turn.left), **turn.left_results}
        for call in turn.left_calls:
            if not await self.is_vouched(kept.get(key_of(call)), turn.customer):
                del kept[key_of(call)]
        first: dict[str, ToolResult] = {}
        for call in turn.left:
            key, action = key_of(call), self.performer.action(call)
            if key not in kept:
                twin = first.get(action)
                kept[key] = same(call, twin) if twin else await self._lost(call, turn, journal)
            first.setdefault(action, kept[key])
        await journal.keep(turn.left_in, turn.left, kept)
        turn.settles([telling(call, kept[key_of(call)], turn.left_for) for call in turn.left])
        for call in turn.left_calls:
            if result := kept.get(key_of(call)):
                self._add_news(turn, place(turn.left_in, call), result)

    async def hear(self, turn: Turn, journal: ThreadJournal | UnkeptThread) -> None:
        """Looks after the writes of earlier turns of which more was to be heard."""
        for where, action in list(turn.open.items()):
            number, key = where.split("/", 1)
            kept = await journal.call(int(number), key)
            record = await self.ledger.record(action) if self.ledger else None
            if not kept or not record or not self.ledger or record.customer_id != turn.customer:
                turn.open.pop(where)
                continue
            record = await self.ledger.settle(record)
            news = written(told(record, repeated=_is_repeated(kept.result)))
            tool = self.performer.writing(kept.result["tool"])
            is_old = all(kept.result.get(name) == value for name, value in news.items())
            if tool and is_old and awaits(tool, kept.result):
                continue  # where it was heard of and not told, a process was killed in between
            about = {k: v for k, v in kept.result.items() if k not in ("data", "error")}
            result = cast(ToolResult, {**about, **news, "finished_at": record.changed_at})
            await journal.rewrite(int(number), key, result)
            turn.tells_again(telling(kept.call, result, kept.question_id))
            self._add_news(turn, where, result)

    async def is_vouched(self, result: ToolResult | None, customer: str) -> bool:
        """Whether the ledger knows of what a result says was written, if it says so.

        A client of a server may be able to write into the state.
        """
        if not result or not self.performer.writing(result["tool"]) or result["status"] == "error":
            return True
        record = await self.ledger.record(result.get("action", "")) if self.ledger else None
        about = (result["tool"], result["subject"], customer)
        known = record and (record.tool, record.subject, record.customer_id) == about
        return bool(known and record and record.receipt is not None)

    def expect(self, turn: Turn, calls: list[ToolCall]) -> None:
        """Keeps in mind which writes of a round more will be heard of."""
        for call in calls:
            result = turn.results[key_of(call)]
            if tool := self.performer.writing(call["name"]):
                turn.expects(place(turn.number, call), result, awaits(tool, result))

    def _add_news(self, turn: Turn, where: str, result: ToolResult) -> None:
        if tool := self.performer.writing(result["tool"]):
            turn.news.append(result)
            turn.expects(where, result, awaits(tool, result))

    async def _lost(
        self, call: ToolCall, turn: Turn, journal: ThreadJournal | UnkeptThread
    ) -> ToolResult:
        """What is said of a call whose round was broken off before its result was kept."""
        tool = self.performer.writing(call["name"])
        if tool is None or not self.ledger or not turn.customer:
            tool = self.performer.tools.get(call["name"])
            return unperformed(call, tool, "not_kept", NOT_KEPT)
        assert isinstance(journal, ThreadJournal)
        where = place(turn.left_in, call)
        if record := await self.ledger.of_call(journal.thread, where):
            return of_record(call, tool, record)
        write = write_of(tool, call, turn.customer, journal.thread, where)
        if write is None or not self.ledger.rules[tool.name].asks_customer:
            return unperformed(call, tool, "not_executed", NOT_BEGUN)
        await self.ledger.note(write, "withdrawn", turn.customer)
        return unperformed(call, tool, "not_executed", WITHDRAWN)


def _is_repeated(result: ToolResult) -> bool:
    return result["status"] == "ok" and bool(result["data"]["repeated"])
