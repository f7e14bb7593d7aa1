"""What a thread's journal and ledger know of the calls in a history."""

from typing import Any

from sqlalchemy import select

from agent import rows, tables
from agent.actions import Record, Write
from agent.calls import ToolCall, output_of
from agent.history.mending import Known
from agent.history.model import Part
from agent.perform import CallError, of_record, validated
from agent.strict import sealed
from tools.database import Database
from tools.registry import WRITES

TOOLS = {tool.name: tool for tool in WRITES}
OPEN = ("claimed", "unknown")  # states of a write of which nobody knows yet what became of it


async def results_of(database: Database, thread: str) -> Known:
    """The results of the thread's own calls: by id, tool and arguments, since ids come again.

    The ledger has the writes of a turn that broke off before its results were kept.
    """
    c = tables.calls.c
    async with database.connect() as db:
        kept = (await db.execute(select(c.call, c.result).where(c.thread_id == thread))).all()
        records = await rows.read(db, tables.actions.c.thread_id == thread)

    def known(part: Part) -> Any:
        call = _call(part)
        found = [output_of(result) for told, result in kept if _is_same(told, call)]
        if not found and part.name in TOOLS:
            tool = TOOLS[part.name]
            found = [output_of(of_record(call, tool, r)) for r in records if _is_of(r, call)]
        if not found or any(each != found[0] for each in found):
            raise KeyError(part.id)
        return found[0]

    return known


def _call(part: Part) -> ToolCall:
    given = part.arguments
    arguments = given if isinstance(given, dict) else sealed(str(given))
    return ToolCall(
        call_id=part.id, item_id="", name=part.name, arguments=arguments, round=0, response_id=""
    )


def _is_same(told: ToolCall, call: ToolCall) -> bool:
    """Arguments that were no JSON stand in a history as an empty object."""
    given = told["arguments"] if isinstance(told["arguments"], dict) else {}
    return (told["call_id"], told["name"], given) == (
        call["call_id"], call["name"], call["arguments"],
    )  # fmt: skip


def _is_of(record: Record, call: ToolCall) -> bool:
    """Whether it is the record of this call, with an end."""
    if record.call.split("/", 2)[-1] != call["call_id"] or record.tool != call["name"]:
        return False
    try:
        write = Write(
            TOOLS[record.tool], dict(validated(TOOLS[record.tool], call["arguments"])), ""
        )
    except CallError:
        return False
    return record.state not in OPEN and write.plain == record.arguments
