"""Which part of a conversation the model sees: the last whole turns.

So a turn costs the same on the first day and on the last. A turn is never cut in two, and no call
loses its result.
"""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage

TURNS = 20


def cut(messages: Sequence[AnyMessage], turns: int = TURNS) -> list[AnyMessage]:
    """The messages before the last `turns` turns; a history begins with the customer."""
    starts = [
        place
        for place, message in enumerate(messages)
        if isinstance(message, HumanMessage)
        and (place == 0 or not isinstance(messages[place - 1], HumanMessage))
    ]
    return list(messages[: starts[-turns:][0]]) if starts else []


def removed(messages: Sequence[AnyMessage]) -> list[RemoveMessage]:
    return [RemoveMessage(id=str(message.id)) for message in messages]


def last_said(messages: Sequence[AnyMessage]) -> list[HumanMessage]:
    """What the customer said last: the newest unbroken row of human messages."""
    said = list(messages)
    while said and not isinstance(said[-1], HumanMessage):
        said.pop()
    return said_since(said)


def said_since(messages: Sequence[AnyMessage]) -> list[HumanMessage]:
    """What the customer said since anybody answered: the human messages at the end."""
    said: list[HumanMessage] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        said.insert(0, message)
    return said
