"""A turn as one JSON object: what `ask --json` prints and other programs read."""

from collections.abc import Mapping
from typing import Any

from agent import usage
from agent.calls import ToolCall, ToolResult, key_of, output_of


def report(thread_id: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The turn that a final state holds. Money is text, times are ISO 8601 with zone."""
    answer, results = state["answer"], state["results"]
    return {
        "thread_id": thread_id,
        "turn": answer["turn"],
        "status": answer["status"],
        "message": answer["message"],
        "locale": answer["locale"],
        "cards": answer["cards"],
        "calls": [_call(call, results.get(key_of(call))) for call in state["calls"]],
        "confirmations": [],
        "rounds": max((call["round"] for call in state["calls"]), default=0) + 1,
        "usage": {**usage.NOTHING, **state["usage"]},
        "cost_usd": None,
        "trace_id": None,
        "error": answer["error"],
    }


def _call(call: ToolCall, result: ToolResult | None) -> dict[str, Any]:
    return {
        "call_id": call["call_id"],
        "item_id": call["item_id"],
        "tool": call["name"],
        "subject": result["subject"] if result else "",
        "arguments": call["arguments"],
        "round": call["round"],
        "response_id": call["response_id"],
        "status": result["status"] if result else "pending",
        "output": output_of(result) if result else None,
        "error": result.get("error") if result else None,
        "started_at": result["started_at"] if result else None,
        "finished_at": result["finished_at"] if result else None,
    }
