"""The last look at a history before it leaves: promise P3, whatever happened before."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agent.history.findings import Examination
from agent.history.model import History, Message, Part

READ = {"type": "read"}  # arguments that `agent.admission` has parsed
FITTED = {"id_too_long", "id_characters"}  # what `agent.wire.ids` sees to for each protocol


class BrokenHistory(Exception):
    """The history is not one that a model may see; the message says which call breaks it."""


def check(messages: Sequence[AnyMessage]) -> None:
    """Each call has exactly one result, right behind its response, in the order of the calls.

    Raises BrokenHistory for a missing, repeated, foreign or misplaced result, for an id that two
    calls of one response share, and for a history that does not begin with the customer.
    """
    if not messages or not isinstance(messages[0], HumanMessage):
        raise BrokenHistory("The history does not begin with the customer's message.")
    if _is_whole(messages):
        return
    history = History("chat", [*map(_message, messages)], None)
    for finding in Examination(history).run().findings:
        if finding.kind not in FITTED:
            raise BrokenHistory(finding.message)
    raise BrokenHistory("The results do not stand in the order of their calls.")


def _is_whole(messages: Sequence[AnyMessage]) -> bool:
    """The rule at a fiftieth of the price of an examination, which says what breaks it."""
    wanted: list[str | None] = []  # ids of the calls that have no result yet, the next one last
    for message in messages:
        if isinstance(message, ToolMessage):
            if not wanted or message.tool_call_id != wanted.pop():
                return False
        elif wanted or not isinstance(message, AIMessage | HumanMessage):
            return False
        elif isinstance(message, AIMessage):
            wanted = [call["id"] for call in reversed(message.tool_calls)]
            if not all(wanted) or len(set(wanted)) != len(wanted):
                return False
    return not wanted


def _message(message: AnyMessage) -> Message:
    match message:
        case HumanMessage():
            return Message("user", (), "", {})
        case ToolMessage():
            return Message("tool", (Part("result", "", {}, id=message.tool_call_id),), "", {})
        case AIMessage():
            ids = [call["id"] or "" for call in message.tool_calls]
            calls = tuple(Part("call", "", READ, id=id_) for id_ in ids)
            return Message("assistant", calls, "", {})
    raise BrokenHistory(f"A {message.type} message has no place in a history.")
