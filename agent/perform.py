"""What happens to one call: known tool, valid arguments, an owner, one run, one result.

Whatever goes wrong becomes the structured error of this call under its own id (promise P4). What
may stop a whole run passes through: a pause of the graph, and the cancelling of the turn itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.errors import GraphInterrupt
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from agent.calls import ErrorKind, ToolCall, ToolError, ToolResult, key_of
from agent.ledger_records import Outcome, Record, Write, told
from agent.limits import Limits
from agent.plain import is_plain
from agent.write_tools import held
from agent.writing import Asker, Writer
from tools.failures import ToolFailure
from tools.locales import clean
from tools.shop.protocol import CustomerShop, Shop
from tools.tool import Context, InvalidArguments, Tool

log = logging.getLogger(__name__)


class CallError(Exception):
    """Ends a call with an error of the given kind."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


@dataclass(frozen=True)
class Performer:
    """Runs calls. `shop` is what the tools' `Context` shows the customer a view of."""

    tools: Mapping[str, Tool]
    shop: Shop
    timeout: float
    limits: Limits
    writer: Writer | None = None

    def subject(self, call: ToolCall) -> str:
        """What a call seems to be about, before it is checked: for progress, nothing else."""
        return _stated_subject(call, self.tools.get(call["name"]))

    def writing(self, name: str) -> Tool | None:
        """The tool of this name, where it is one that writes."""
        tool = self.tools.get(name)
        return tool if tool is not None and tool.writes else None

    def action(self, call: ToolCall) -> str:
        """The same for calls that ask for the same write; each call's own where it is none."""
        tool = self.writing(call["name"])
        write = write_of(tool, call, "") if tool else None
        return write.action if write else key_of(call)

    async def perform(self, call: ToolCall, asker: Asker, *, may_pause: bool = True) -> ToolResult:
        """may_pause: False where calls share a task: the answer to a pause could reach another."""
        started = _now()
        tool = self.tools.get(call["name"])
        subject, arguments = _stated_subject(call, tool), call["arguments"]
        try:
            if tool is None:
                raise CallError("unknown_tool", f"There is no tool {call['name']!r}.")
            checked = validated(tool, arguments)
            subject, arguments = _subject(tool, checked), _plain(checked)
            if tool.writes and self.writer:
                outcome = await self.writer.write(tool, call, dict(checked), asker)
                return _result(call, tool, subject, arguments, started, written(outcome))
            data = await self._run(tool, call, checked, asker.customer)
            _check_subject(tool, arguments, data)
        except GraphInterrupt:
            if may_pause:
                raise
            paused = CallError("not_executed", "It asks first: call it with fewer others at once.")
            return _result(call, tool, subject, arguments, started, _error(paused))
        except CallError as error:
            log.info("call %r: %s", call["call_id"], error.kind)  # its message may hold values
            return _result(call, tool, subject, arguments, started, _error(error))
        return _result(call, tool, subject, arguments, started, {"status": "ok", "data": data})

    async def _run(
        self, tool: Tool, call: ToolCall, checked: BaseModel | dict[str, Any], customer: str | None
    ) -> Any:
        context = self._context(tool, customer)
        arguments = dict(checked)
        async with self.limits.of(tool):
            running = tool.run(context, arguments, call["call_id"])
            data = await _outcome(running, tool.timeout or self.timeout, tool.name)
        if not is_plain(data):
            raise CallError("service_error", "The service answered with more than can be kept.")
        return data

    def _context(self, tool: Tool, customer: str | None) -> Context | None:
        if not tool.needs_customer:
            return None
        if customer is None:
            raise CallError("rejected", "Nobody is signed in, so nothing was looked up.")
        return Context(customer=customer, shop=CustomerShop(self.shop, customer))


async def _outcome(running: Awaitable[Any], seconds: float, name: str) -> Any:
    """Gives a tool a task of its own, so that one that cancels itself cannot cancel the turn."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()  # `asyncio.wait` for one task, at a third of its price
    task = loop.create_task(_told(running, over))
    timer = loop.call_later(seconds, _end, over)
    try:
        await over
        in_time = task.done()
    finally:
        timer.cancel()
        task.cancel()  # nothing happens to a task that is done
    if not in_time:
        task.add_done_callback(_forget)
        raise CallError("timeout", "The service did not answer in time.")
    if task.cancelled():
        raise CallError("service_error", "The service broke the call off.")
    try:
        return task.result()
    except GraphInterrupt:
        raise
    except ToolFailure as failure:
        raise CallError(failure.kind, failure.message) from None
    except BaseException as error:  # a tool's bug or outage must not reach its siblings
        log.warning("tool %s failed: %s", name, type(error).__name__)
        raise CallError("service_error", "The service failed.") from None


async def _told(running: Awaitable[Any], over: "asyncio.Future[None]") -> Any:
    """Says that it is over as the last thing that it does: whoever waits goes on after it."""
    try:
        return await held(running)
    finally:
        _end(over)


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)


def _forget(task: "asyncio.Future[Any]") -> None:
    """Takes note of what a tool raised too late, or asyncio would complain that nobody did."""
    if not task.cancelled():
        task.exception()


def validated(tool: Tool, arguments: dict[str, Any] | str) -> BaseModel | dict[str, Any]:
    if isinstance(arguments, str):
        raise CallError("invalid_arguments", f"Not one strict JSON object: {_shortened(arguments)}")
    try:
        return tool.validate(to_json(arguments).decode())
    except InvalidArguments as error:
        raise CallError("invalid_arguments", str(error)) from None
    except Exception as error:  # a tool's own validator may raise anything
        log.warning("tool %s cannot check its arguments: %s", tool.name, type(error).__name__)
        raise CallError("invalid_arguments", "The arguments could not be checked.") from None


def write_of(tool: Tool, call: ToolCall, *about: Any) -> Write | None:
    """The write that a call asks for; None for arguments that the tool does not take."""
    try:
        return Write(tool, dict(validated(tool, call["arguments"])), *about)
    except CallError:
        return None


def _shortened(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:200])


def _subject(tool: Tool, checked: BaseModel | dict[str, Any]) -> str:
    return str(dict(checked)[tool.subject]) if tool.subject else ""


def _stated_subject(call: ToolCall, tool: Tool | None) -> str:
    """What a call that was never validated seems to be about; it names a failure, nothing more."""
    if tool is None or not tool.subject or isinstance(call["arguments"], str):
        return ""
    stated = call["arguments"].get(tool.subject)
    named = clean(stated) if isinstance(stated, str) else ""
    return "" if len(named) > 64 or " " in named else named  # words are no name, but a claim


def _plain(checked: BaseModel | dict[str, Any]) -> dict[str, Any]:
    if isinstance(checked, BaseModel):
        return checked.model_dump(mode="json")
    text = to_json(checked, fallback=str, bytes_mode="base64", inf_nan_mode="strings")
    plain: dict[str, Any] = from_json(text)
    return plain


def _check_subject(tool: Tool, arguments: dict[str, Any], data: Any) -> None:
    """An answer about another order than it was asked for is no answer.

    What it is about is read as the argument was read, so that both are normalised alike.
    """
    if not tool.subject:
        return
    try:
        answered = {**arguments, tool.subject: data[tool.subject]}
        same = _plain(tool.validate(to_json(answered).decode())) == arguments
    except (InvalidArguments, LookupError, TypeError):
        same = False
    if not same:
        raise CallError("wrong_subject", "The service answered about something else.")


def _error(error: CallError) -> dict[str, Any]:
    return {"status": "error", "error": ToolError(kind=error.kind, message=error.message)}


def _result(
    call: ToolCall,
    tool: Tool | None,
    subject: str,
    arguments: dict[str, Any] | str,
    started: str,
    outcome: dict[str, Any],
) -> ToolResult:
    result: Any = {
        "call_id": call["call_id"],
        "tool": call["name"],
        "subject": subject,
        "subject_name": tool.subject if tool and subject else "",
        "arguments": arguments,
        "started_at": started,
        "finished_at": _now(),
        **outcome,
    }
    return cast(ToolResult, result)


def written(outcome: Outcome) -> dict[str, Any]:
    """What the ledger says, as the part of a result that differs from call to call."""
    action = {"action": outcome.key} if outcome.key else {}
    if outcome.error is not None:
        return {"status": "error", "error": outcome.error, **action}
    return {"status": "ok", "data": outcome.data, **action}


def same(call: ToolCall, result: ToolResult) -> ToolResult:
    """The result of a call that asks for the very write that another call of its response got."""
    repeated = {"data": {**result["data"], "repeated": True}} if result["status"] == "ok" else {}
    return cast(ToolResult, {**result, "call_id": call["call_id"], **repeated})


def of_record(call: ToolCall, tool: Tool, record: Record) -> ToolResult:
    """The result of a call by what the ledger has of it."""
    outcome = written(told(record))
    return _result(call, tool, record.subject, record.arguments, record.asked_at, outcome)


def unperformed(call: ToolCall, tool: Tool | None, kind: ErrorKind, message: str) -> ToolResult:
    """The result of a call that did not run, or whose result was lost."""
    error = _error(CallError(kind, message))
    return _result(call, tool, _stated_subject(call, tool), call["arguments"], _now(), error)


def _now() -> str:
    return datetime.now(UTC).isoformat()
