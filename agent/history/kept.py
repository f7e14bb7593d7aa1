"""What a thread's journal and ledger know of the calls in a history."""

from typing import Any

from sqlalchemy import select

from agent import rows, tables
from agent.calls import ToolCall, output_of
from agent.history.mending import Known
from agent.history.model import Part
from agent.journal import ThreadJournal
from agent.ledger_records import Record
from agent.perform import of_record, write_of
from agent.store import open_database
from agent.strict import sealed
from tools.registry import WRITES

TOOLS = {tool.name: tool for tool in WRITES}
OPEN = ("claimed", "unknown")  # states of a write of which nobody knows yet what became of it


async def results_of(url: str, thread: str) -> Known | None:
    """The results of the thread's own calls: by id, tool and arguments, since ids come again.

    The ledger has the writes of a turn that broke off before its results were kept. None where
    the database has no such thread.
    """
    database, c = open_database(url), tables.calls.c
    try:
        if await ThreadJournal(database, thread).owner() is None:
            return None
        async with database.connect() as db:
            kept = (await db.execute(select(c.call, c.result).where(c.thread_id == thread))).all()
            records = await rows.read(db, tables.actions.c.thread_id == thread)
    finally:
        await database.close()

    def known(part: Part) -> Any:
        given = part.arguments if isinstance(part.arguments, dict) else sealed(str(part.arguments))
        call: Any = {"call_id": part.id, "name": part.name, "arguments": given}
        found = [output_of(result) for told, result in kept if _is_same(told, call)]
        if not found:
            mine = [record for record in records if _is_of(record, call)]
            found = [output_of(of_record(call, TOOLS[each.tool], each)) for each in mine]
        if not found or any(each != found[0] for each in found):
            raise KeyError(part.id)
        return found[0]

    return known


def _is_same(told: ToolCall, call: ToolCall) -> bool:
    """Arguments that were no JSON stand in a history as an empty object."""
    given = told["arguments"] if isinstance(told["arguments"], dict) else {}
    return {**told, "arguments": given}.items() >= call.items()


def _is_of(record: Record, call: ToolCall) -> bool:
    """Whether it is the record of this call, with an end."""
    if (record.call.split("/", 2)[-1], record.tool) != (call["call_id"], call["name"]):
        return False
    write = write_of(TOOLS[record.tool], call, "") if record.tool in TOOLS else None
    return write is not None and record.state not in OPEN and write.plain == record.arguments
