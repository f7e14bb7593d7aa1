"""What LangSmith is shown of a turn: its shape, and no person.

With `LANGSMITH_TRACING` set, a turn is one root run; under it stand the model's responses, each try
a run of its own, and each call as a run of type `tool`, with `turn`, `round`, `response_id` and
`call_id` as metadata. `agent/traces_shape.py` says what else is told.
"""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import UUID

from dotenv import dotenv_values
from langsmith import configure, tracing_context, uuid7
from langsmith.run_helpers import get_current_run_tree
from langsmith.run_trees import RunTree, get_cached_client
from langsmith.utils import LangSmithError, LangSmithMissingAPIKeyWarning, tracing_is_enabled
from pydantic_core import to_json

from agent.calls import ToolCall, ToolResult
from agent.problems import Problem
from agent.settings import Settings
from agent.traces_client import TraceClient
from agent.traces_shape import OURS, id_or_none

Told = dict[str, ToolResult]
log = logging.getLogger(__name__)


def install(settings: Settings) -> None:
    """Gives this process a client that tells no person, also where tracing is switched on later.

    LANGSMITH_* may stand in `.env` too. Raises Problem where they cannot be used.
    """
    for name, value in dotenv_values(".env").items():
        if name.startswith("LANGSMITH_") and value is not None:
            os.environ.setdefault(name, value)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", LangSmithMissingAPIKeyWarning)
        _configure(settings)
    if any(each.category is LangSmithMissingAPIKeyWarning for each in said):
        log.warning(
            "LANGSMITH_TRACING=true needs LANGSMITH_API_KEY, which is not set. LangSmith takes no"
            " trace until then; they wait in %s.",
            settings.trace_folder,
        )


def _configure(settings: Settings) -> None:
    try:
        there = get_cached_client(auto_batch_tracing=False, info={})  # whatever makes no threads
        if not isinstance(there, TraceClient) or there.settings != settings:
            configure(client=TraceClient(settings))
    except (LangSmithError, ValueError) as error:  # with which the SDK's own fails as well
        if tracing_is_enabled():
            raise Problem(
                f"What LANGSMITH_* variables say cannot be used ({type(error).__name__}). Nothing"
                " was started; correct them, or set LANGSMITH_TRACING=false."
            ) from None


def client(settings: Settings) -> TraceClient:
    """What sends now. Raises Problem where nothing is traced."""
    install(settings)
    found = get_cached_client() if tracing_is_enabled() else None
    if not isinstance(found, TraceClient):
        raise Problem(
            "Nothing is traced, as LANGSMITH_TRACING is not set. Nothing was sent; set"
            " LANGSMITH_TRACING=true too."
        )
    return found


def flush() -> None:
    """Sends what waits to be sent, for a bounded time; the rest is kept in the folder."""
    if tracing_is_enabled():
        get_cached_client().flush()


def run_id() -> UUID | None:
    """An id for the root run of a turn that is about to be asked for."""
    return uuid7() if tracing_is_enabled() else None


def trace_id() -> str | None:
    """The id of the root run under which this step runs."""
    run = _current()
    return told(run.trace_id) if run else None


def told(trace: UUID | None) -> str | None:
    """The id of a trace; None where it is not among those that are sent."""
    client = get_cached_client() if trace else None
    return str(trace) if isinstance(client, TraceClient) and client.takes(str(trace)) else None


def note(**metadata: object) -> None:
    """Adds metadata to the run of the step that is running. It is sent as it is."""
    if run := _current():
        run.extra.setdefault(OURS, {"metadata": {}})["metadata"].update(metadata)


def note_turn(customer: str, **metadata: object) -> None:
    """Adds metadata to the root run; the customer's id under another name."""
    if (run := _current()) and isinstance(run.client, TraceClient):
        whose = {"customer": run.client.pseudonyms.of(customer)}
        run.client.note_root(str(run.trace_id), {**whose, **metadata})


@contextmanager
def call_run(call: ToolCall, turn: int, known: bool, *, alone: bool) -> Iterator[Told]:
    """The run of one call. Its result is put into the dictionary under "result".

    alone: the step makes this call only, so its own run is the call's.
    """
    made: Told = {}
    step = _current()
    if step is None:
        yield made
        return
    ours = _of_call(call, turn, known)
    if alone:
        step.extra[OURS] = ours
    with nullcontext(step) if alone else _beside(step, ours) as run:
        yield made
        _tell(run, made["result"])


@contextmanager
def _beside(step: RunTree, ours: dict[str, Any]) -> Iterator[RunTree]:
    run = step.create_child(name="call", run_type="tool", extra={"metadata": {}, OURS: ours})
    run.post()
    try:
        with tracing_context(parent=run):
            yield run
    except BaseException as error:
        run.end(error=type(error).__name__)
        raise
    finally:
        run.patch()


def _of_call(call: ToolCall, turn: int, known: bool) -> dict[str, Any]:
    ids = {name: id_or_none(call[name]) for name in ("call_id", "item_id", "response_id")}
    name = call["name"] if known else "unknown tool"
    metadata = {**ids, "round": call["round"], "turn": turn, "tool": name}
    return {
        "type": "tool",
        "name": name,
        "metadata": {name: value for name, value in metadata.items() if value},
        "inputs": {"call_id": ids["call_id"], "bytes": len(to_json(call["arguments"]))},
        "outputs": {},
    }


def _tell(run: RunTree, result: ToolResult) -> None:
    ours = run.extra[OURS]
    kind = {"error_kind": result["error"]["kind"]} if result["status"] == "error" else {}
    ours["outputs"] = {"status": result["status"], **kind}
    ours["metadata"] |= ours["outputs"]
    if isinstance(run.client, TraceClient):
        ours["metadata"]["subject"] = run.client.pseudonyms.of(result["subject"])


def _current() -> RunTree | None:
    run = get_current_run_tree()  # asked first, since it is cheaper than the environment
    return run if run and tracing_is_enabled() else None
