"""A turn as one JSON object: what `ask --json` and `decide --json` print."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from agent import usage
from agent.calls import ToolCall, ToolResult, key_of, output_of

PENDING = ("interrupt_id", "call_id", "tool", "subject", "arguments", "digest")


def report(
    thread_id: str,
    state: Mapping[str, Any],
    pauses: Sequence[Interrupt] = (),
    trace: str | None = None,
) -> dict[str, Any]:
    """The turn that a state holds. Money is text, times are ISO 8601 with zone.

    pauses: of the thread, where confirmations are pending. There is no answer yet then: the message
    is what is asked. trace: the id of the turn's root run.
    """
    asked = confirmations(state, pauses)
    answer = _asking(state, asked) if asked else state["answer"]
    return {
        "thread_id": thread_id,
        "turn": answer["turn"],
        "status": answer["status"],
        "message": answer["message"],
        "locale": answer["locale"],
        "cards": answer["cards"],
        "calls": [
            _call(call, state["results"].get(key_of(call)), asked) for call in state["calls"]
        ],
        "confirmations": [{name: each[name] for name in PENDING} for each in asked],
        "rounds": max((call["round"] for call in state["calls"]), default=0) + (not asked),
        "usage": {**usage.NOTHING, **state["usage"]},
        "cost_usd": state.get("cost_usd"),
        "trace_id": trace,
        "error": answer["error"],
    }


def confirmations(state: Mapping[str, Any], pauses: Sequence[Interrupt]) -> list[dict[str, Any]]:
    """What the customer is asked to confirm, in the order in which the model asked for it.

    Each with the fields of its pause, `interrupt_id` and `question`.
    """
    asked = [
        {
            **pause.value,
            "interrupt_id": pause.id,
            "question": pause.value["action_requests"][0]["description"],
        }
        for pause in pauses
        if isinstance(pause.value, dict) and "digest" in pause.value
    ]
    places = {call["call_id"]: place for place, call in enumerate(state.get("calls", ()))}
    return sorted(asked, key=lambda each: places[each["call_id"]])


def _asking(state: Mapping[str, Any], asked: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "turn": state["begun"]["number"],
        "status": "awaiting_confirmation",
        "message": "\n".join(each["question"] for each in asked),
        "locale": asked[0]["locale"],
        "cards": [],
        "error": None,
    }


def _call(call: ToolCall, result: ToolResult | None, asked: list[dict[str, Any]]) -> dict[str, Any]:
    subjects = {each["call_id"]: each["subject"] for each in asked}
    return {
        "call_id": call["call_id"],
        "item_id": call["item_id"],
        "tool": call["name"],
        "subject": result["subject"] if result else subjects.get(call["call_id"], ""),
        "arguments": call["arguments"],
        "round": call["round"],
        "response_id": call["response_id"],
        "status": result["status"] if result else "pending",
        "output": output_of(result) if result else None,
        "error": result.get("error") if result else None,
        "started_at": result["started_at"] if result else None,
        "finished_at": result["finished_at"] if result else None,
    }
