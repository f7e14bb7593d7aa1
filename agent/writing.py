"""A call that writes: is it done already, is it allowed, does the customer confirm it? Then once.

Nothing before the pause has an effect. Everything after it is the ledger's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config

from agent import progress
from agent.answer.question import question
from agent.calls import ToolCall, ToolResult, key_of
from agent.confirming import answered_at_large, confirmation, decided, is_only_one
from agent.journal import ThreadJournal
from agent.ledger import UNKNOWN, Ledger
from agent.ledger_records import Outcome, Write, failed
from agent.limits import Limits
from tools.database import DatabaseProblem
from tools.tool import Tool

NOT_CONFIRMED = "The customer did not confirm it, so it was not done."
WITHDRAWN = "It waited for the customer's confirmation and was withdrawn. Nothing was changed."
NOT_KEPT = "Changes need a conversation that is kept. Nothing was done."
NOT_SIGNED_IN = "Nobody is signed in, so nothing was done."


@dataclass(frozen=True)
class Asker:
    """For whom and where calls are made. customer: as authentication says, None for nobody.

    fence: the token of the turn. language: in which a question to the customer is put.
    """

    customer: str | None
    thread: str = ""
    turn: int = 0
    fence: str = ""
    language: str = "en"


def place(turn: int, call: ToolCall) -> str:
    """Which call of its thread it is, as the ledger names it."""
    return f"{turn}/{key_of(call)}"


def awaits(tool: Tool, result: ToolResult) -> bool:
    """Whether more will be heard of a write: it is with staff, or not finished, or not known."""
    if result["status"] == "error":
        return result["error"]["kind"] in ("awaiting_approval", "unknown_outcome")
    return tool.awaits(result["data"])


@dataclass(frozen=True)
class Writer:
    """Carries out the write calls of a graph."""

    ledger: Ledger
    limits: Limits

    async def write(
        self, tool: Tool, call: ToolCall, checked: Mapping[str, Any], asker: Asker
    ) -> Outcome:
        """What the call is told. Pauses where the customer is to confirm it."""
        if asker.customer is None:
            return failed("rejected", NOT_SIGNED_IN)
        about = (asker.customer, asker.thread, place(asker.turn, call))
        try:
            return await self._write(Write(tool, checked, *about, fence=asker.fence), asker)
        except DatabaseProblem:
            return failed("unknown_outcome", UNKNOWN)

    async def _write(self, write: Write, asker: Asker) -> Outcome:
        journal = ThreadJournal(self.ledger.database, asker.thread)
        if not asker.thread or await journal.owner() != asker.customer:
            return failed("not_executed", NOT_KEPT)
        receipt: Mapping[str, Any] | None = None
        while known := await self.ledger.look_up(write):
            if not known.data or not await journal.told_again(asker.turn, known.key):
                return await self.ledger.tell_again(write, known)
            receipt, write = known.data, replace(write, again=known.key)  # once more, on purpose
        if problem := await self.ledger.check(write):
            return Outcome(error=problem)
        if receipt is None and not self.ledger.rules[write.tool.name].asks_customer:
            return await self._begin(write)
        return await self._confirmed(write, asker.language, receipt)

    async def _confirmed(
        self, write: Write, language: str, receipt: Mapping[str, Any] | None
    ) -> Outcome:
        again = receipt is not None
        asking = question(write.tool, write.arguments, language, again=again)
        asked = confirmation(write, asking, language, receipt)
        if answered_at_large(config := get_config()) and not await is_only_one(config):
            await self.spoil(write.thread, config)
        decision = decided(asked)
        if decision.confirmed:
            return await self._begin(replace(write, confirmed=True))
        await self.ledger.note(write, "rejected", write.customer)
        said = f" They say: {decision.reason}" if decision.reason else ""
        return failed("rejected", NOT_CONFIRMED + said)

    async def _begin(self, write: Write) -> Outcome:
        progress.tell("call_started", write.call_id, write.tool.name, write.subject, "running")
        async with self.limits.of(write.tool):
            return await self.ledger.write_once(write)

    async def spoil(self, thread: str, config: RunnableConfig) -> None:
        """Somebody else has answered a pause of the thread, or nobody knows which one.

        LangGraph keeps an answer that names no pause, for whoever goes on with the run next. So
        nothing that this turn still waits for is carried out any more.
        """
        if answered_at_large(config):
            await self.ledger.begin_turn(thread, uuid4().hex)
