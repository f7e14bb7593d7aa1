"""The last look at a history before it leaves: promise P3, whatever happened before."""

from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage


class BrokenHistory(Exception):
    """The history is not one that a model may see; the message says which call breaks it."""


def check(messages: Sequence[AnyMessage]) -> None:
    """Each call has exactly one result, right behind its response, in the order of the calls.

    Raises BrokenHistory for a missing, repeated, foreign or misplaced result, for an id that two
    calls of one response share, and for a history that does not begin with the customer.
    """
    if not messages or not isinstance(messages[0], HumanMessage):
        raise BrokenHistory("The history does not begin with the customer's message.")
    rest = iter(messages)
    for message in rest:
        if not isinstance(message, HumanMessage | AIMessage | ToolMessage):
            raise BrokenHistory(f"A {message.type} message has no place in a history.")
        if isinstance(message, ToolMessage):
            raise BrokenHistory(f"A result stands without its call: {message.tool_call_id}.")
        if isinstance(message, AIMessage) and message.tool_calls:
            _check_results([call["id"] or "" for call in message.tool_calls], rest)


def _check_results(ids: list[str], rest: Iterator[AnyMessage]) -> None:
    if not all(ids) or len(set(ids)) != len(ids):
        raise BrokenHistory("Two calls of one response share an id.")
    for id_ in ids:
        result = next(rest, None)
        if not isinstance(result, ToolMessage) or result.tool_call_id != id_:
            raise BrokenHistory(f"No result of call {id_} stands where it must.")
