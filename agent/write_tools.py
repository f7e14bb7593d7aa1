"""What the ledger asks of a write tool: its own functions, each with its timeout.

await tools.problem(write)           # would it be refused?
await tools.receipt(write, key, db)  # do it
await tools.find(write, key)         # what does the outside service say of the key?
await tools.stands(write, record)    # is the effect of that receipt still there?
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from agent.calls import ToolError
from agent.ledger_records import Record, Write
from agent.plain import is_plain
from tools.failures import ToolFailure, WrongSubject
from tools.shop.protocol import CustomerShop, Shop
from tools.tool import Context, Desk, Receipt, Tool

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class WriteTools:
    """`by_name` are the tools, `timeout` the seconds of those that name none of their own."""

    by_name: Mapping[str, Tool]
    shop: Shop
    desk: Desk | None = None
    timeout: float = 10

    def seconds(self, tool: Tool) -> float:
        return tool.timeout or self.timeout

    def is_outside(self, write: Write) -> bool:
        return write.tool.is_outside(self._context(write))

    def write_of(self, record: Record) -> Write:
        """The call that a record was made by."""
        tool = self.by_name[record.tool]
        checked = dict(tool.validate(json.dumps(record.arguments)))
        return Write(tool, checked, record.customer_id, record.thread_id, record.call)

    def awaits(self, record: Record) -> bool:
        """Whether more will be heard of what is done or asked for; the tool can look it up."""
        tool = self.by_name.get(record.tool)
        return bool(tool and tool.find and record.receipt and tool.awaits(record.receipt))

    async def problem(self, write: Write) -> ToolError | None:
        """What the write would be refused with as things are."""
        try:
            if write.tool.check:
                await self._timed(write, write.tool.check(self._context(write), write.arguments))
        except Exception as error:
            return problem_of(write.tool, error)
        return None

    async def stands(self, write: Write, record: Record) -> bool:
        if write.tool.stands is None or record.receipt is None:
            return True
        asked = write.tool.stands(self._context(write, record.key), record.receipt)
        return await self._timed(write, asked)

    async def receipt(
        self, write: Write, key: str, db: AsyncConnection | None = None
    ) -> dict[str, Any]:
        """Carries it out, in the transaction `db` where there is one."""
        context = self._context(write, key, db)
        data = await self._timed(write, write.tool.run(context, write.arguments, write.call_id))
        if write.tool.subject and str(data[write.tool.subject]) != write.subject:
            raise WrongSubject("The service answered about something else. Nothing was changed.")
        if not is_plain(data):
            raise ValueError("a receipt that cannot be kept")
        return dict(data)

    async def find(self, record: Record) -> Receipt | None:
        write = self.write_of(record)
        assert write.tool.find is not None
        context = self._context(write, record.key)
        return await self._timed(write, write.tool.find(context, write.arguments))

    async def _timed(self, write: Write, work: Awaitable[T]) -> T:
        async with asyncio.timeout(self.seconds(write.tool)):
            return await held(work)

    def _context(self, write: Write, key: str = "", db: AsyncConnection | None = None) -> Context:
        shop = CustomerShop(self.shop, write.customer)
        return Context(write.customer, shop, write.thread, self.desk, key, db)


async def held(running: Awaitable[T]) -> T:
    """A tool may end itself, but not the process: asyncio lets these two pass to everybody."""
    try:
        return await running
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"the tool raised {type(error).__name__}") from None


def problem_of(tool: Tool, error: Exception) -> ToolError:
    """What is told of a tool that failed before anything was changed."""
    if isinstance(error, ToolFailure):
        return ToolError(kind=error.kind, message=error.message)
    log.warning("tool %s failed: %s", tool.name, type(error).__name__)
    if isinstance(error, TimeoutError):
        message = "The service did not answer in time. Nothing was changed."
        return ToolError(kind="timeout", message=message)
    return ToolError(kind="service_error", message="The service failed. Nothing was changed.")
