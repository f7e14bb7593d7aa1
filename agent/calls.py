"""The words of the graph: a tool call, its result, and the key that holds the two together.

All of it is plain JSON, since it lives in the graph's state and in checkpoints.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

ErrorKind = Literal[
    "invalid_arguments",
    "unknown_tool",
    "not_found",
    "refused",
    "timeout",
    "service_error",
    "wrong_subject",
    "rejected",
    "awaiting_approval",
    "not_executed",
    "not_kept",
    "unknown_outcome",
]


class ToolCall(TypedDict):
    """One call as the model asked for it.

    call_id: the model's own id; never replaced, unique only within one response.
    item_id: the id of the response item (`fc_…`), "" where the protocol has none.
    arguments: an object; the raw text where the model did not send strict JSON.
    round: from 1, counted within the turn. response_id: "" where the model gives none.
    """

    call_id: str
    item_id: str
    name: str
    arguments: dict[str, Any] | str
    round: int
    response_id: str


class ToolError(TypedDict):
    kind: ErrorKind
    message: str


class ToolResult(TypedDict):
    """What became of one call: `data` when status is "ok", `error` when it is "error".

    subject: what the call was about, normalised (an order id), "" if nothing.
    arguments: canonical, as the tool's schema read them; what makes two reads the same read.
    started_at, finished_at: ISO 8601 with zone.
    action: the ledger's key of what a write did, or is to do.
    """

    call_id: str
    tool: str
    subject: str
    subject_name: str
    arguments: dict[str, Any] | str
    status: Literal["ok", "error"]
    data: NotRequired[Any]
    error: NotRequired[ToolError]
    action: NotRequired[str]
    started_at: str
    finished_at: str


class Failure(TypedDict):
    """Why a turn could not be answered as usual; `message` is for the person who operates it."""

    kind: str
    message: str


def key_of(call: ToolCall) -> str:
    """Where a call's result is kept in this turn: ids may start again in every round."""
    return f"{call['round']}/{call['call_id']}"


def output_of(result: ToolResult) -> dict[str, Any]:
    """What the model, and a program that reads `calls[].output`, is told about a call."""
    about = {result["subject_name"]: result["subject"]} if result["subject_name"] else {}
    if result["status"] == "ok":
        return {"status": "ok", **about, "data": result["data"]}
    return {"status": "error", **about, "error": result["error"]}
