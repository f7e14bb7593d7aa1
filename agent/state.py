"""What a run of the graph remembers, and how parallel updates to it are merged."""

from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import _messages_delta_reducer
from typing_extensions import TypedDict

from agent.calls import ToolCall, ToolResult

Results = dict[str, ToolResult]


class ConflictingResults(Exception):
    """Two different results claim one call. Nothing is guessed: the run stops."""


def merge_results(left: Results, right: Results) -> Results:
    """Union by key: commutative, associative, idempotent, so the order of arrival cannot matter.

    The same result told twice (a step run again after a crash) is one result, whichever of the
    two ran first. Raises ConflictingResults when one call has two different results.
    """
    merged = dict(left)
    for key, result in right.items():
        merged[key] = _same(merged[key], result, key) if key in merged else result
    return merged


def _same(one: ToolResult, other: ToolResult, key: str) -> ToolResult:
    if _untimed(one) != _untimed(other):
        raise ConflictingResults(f"Call {key} has two different results.")
    return min(one, other, key=lambda result: (result["finished_at"], result["started_at"]))


def _untimed(result: ToolResult) -> dict[str, Any]:
    return {name: value for name, value in result.items() if not name.endswith("_at")}


class Question(TypedDict):
    """What a client sends: messages, so that every chat client can talk to the graph.

    Checkpoints keep what each step added, not the whole list again; and a message that is removed
    and added in one update moves to the end, where `add_messages` would leave it in its place.
    """

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class Begun(TypedDict):
    """What is certain of a turn from its first step on.

    number: counts the customer's messages, from 1. question_id: of the message that it answers.
    customer: whose thread it is, "" while nobody is signed in.
    fence: its token: another one's begins, and what this one still wants written is not.
    language: that the question seems to be in; that of the one before where it does not say.
    """

    number: int
    question_id: str
    customer: str
    fence: str
    language: str


class State(Question, total=False):
    """begun: the turn that runs, or was the last. round: responses in it; 0 between turns.

    calls: this turn's, in the order the model asked. results: this turn's, by `round/call_id`.
    open: the thread's writes of which more will be heard, the ledger's key by `turn/round/call_id`.
    news: results of writes of earlier turns that the customer has not been told yet.
    usage: tokens of this turn. spent: each response of the model, and what it used.
    cost_usd: what the turn cost, None where that is not known.
    answer: what the customer was told, with its cards.
    """

    begun: Begun
    round: int
    calls: list[ToolCall]
    results: Annotated[Results, merge_results]
    open: dict[str, str]
    news: list[ToolResult]
    usage: dict[str, int]
    spent: list[Any]
    cost_usd: str | None
    answer: dict[str, Any]
