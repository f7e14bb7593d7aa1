"""What LangSmith is shown of a turn: its shape, and no person.

With `LANGSMITH_TRACING` set, a turn is one root run; under it stand the model's responses, and each
call as a run of type `tool`, with `turn`, `round`, `response_id` and `call_id` as metadata. Inputs
and outputs keep ids, statuses and sizes only, unless SUPPORT_TRACE_CONTENT allows the rest.
"""

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from dotenv import dotenv_values
from langgraph.errors import GraphInterrupt
from langsmith import Client, configure, trace
from langsmith.run_helpers import get_current_run_tree
from langsmith.utils import tracing_is_enabled
from pydantic import BaseModel

from agent.calls import ToolCall, ToolResult
from agent.settings import Settings

TEXTS = {"call_id", "item_id", "response_id", "tool", "status", "kind", "source", "type", "role"}
NUMBERS = {"turn", "round", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"}
KIND = re.compile(r"\W")  # what ends the name of an exception
FLUSH = 5.0  # seconds that the end of a command waits for what was not sent yet


def install(settings: Settings) -> None:
    """Gives this process a client that hides content. LANGSMITH_* may stand in `.env` too."""
    for name, value in dotenv_values(".env").items():
        if name.startswith("LANGSMITH_") and value is not None:
            os.environ.setdefault(name, value)
    if tracing_is_enabled():
        hide = None if settings.trace_content else shape
        client = Client if settings.trace_content else _Discreet
        configure(client=client(hide_inputs=hide, hide_outputs=hide))


class _Discreet(Client):
    """Of an error only its kind is told: a pause is one too, and its text holds the arguments."""

    def _hide_run_error(self, error: object) -> str:
        return KIND.split(str(error), maxsplit=1)[0]


def flush() -> None:
    """Sends what waits to be sent, for a bounded time."""
    if tracing_is_enabled():
        from langsmith.run_trees import get_cached_client

        get_cached_client().flush(timeout=FLUSH)


def call_run(
    call: ToolCall, turn: int, known: bool
) -> AbstractAsyncContextManager[dict[str, ToolResult]]:
    """The run of one call. Its result is put into the dictionary under "result".

    A step that is traced has a run of its own already: that is cheaper to ask than the settings.
    """
    return _traced(call, turn, known) if get_current_run_tree() else nullcontext({})


@asynccontextmanager
async def _traced(call: ToolCall, turn: int, known: bool) -> AsyncIterator[dict[str, ToolResult]]:
    told: dict[str, ToolResult] = {}
    ids = {name: call[name] for name in ("call_id", "item_id", "response_id", "round")}
    name = call["name"] if known else "unknown tool"
    inputs = {"call_id": call["call_id"], "arguments": call["arguments"]}
    pause: GraphInterrupt | None = None
    async with trace(name, "tool", inputs=inputs, metadata={**ids, "turn": turn}) as run:
        try:
            yield told
        except GraphInterrupt as asked:
            pause = asked
            run.end(outputs={"status": "pending"})
        if "result" in told:
            run.end(outputs=dict(told["result"]))
            run.add_metadata(_outcome(told["result"]))
    if pause:
        raise pause


def note(**metadata: object) -> None:
    """Adds metadata to the run of the step that is running."""
    if run := get_current_run_tree():
        run.add_metadata(metadata)


def _outcome(result: ToolResult) -> dict[str, str]:
    kind = {"error_kind": result["error"]["kind"]} if result["status"] == "error" else {}
    return {"status": result["status"], **kind}


def shape(value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of inputs or outputs without what people or shops wrote."""
    return {str(name)[:64]: _shape(each, str(name)) for name, each in value.items()}


def _shape(value: Any, name: str) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return value if name in TEXTS and len(value) <= 100 else f"({len(value)} characters)"
        case int() | float():
            return value if name in NUMBERS else "(number)"
        case Mapping():
            return shape(value)
        case list() | tuple():
            return [_shape(each, name) for each in value]
        case BaseModel():
            return shape(value.model_dump())
        case _:
            return f"({type(value).__name__})"
