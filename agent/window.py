"""Which part of a conversation the model sees: the last whole turns.

So a turn costs the same on the first day and on the last. A turn is never cut in two, and no call
loses its result. Half of the turns are cut at once: in between, each request begins with the one
before it, and vendors charge little for the beginning that they have seen already.
"""

from collections.abc import Iterable, Sequence

from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage

from agent.history.langchain import BrokenHistory, check
from agent.messages import is_aside

TURNS = 24


def usable(messages: Sequence[AnyMessage], most: int = TURNS) -> list[AnyMessage]:
    """What of a conversation a new turn goes on with: the last half of `most` turns, or all turns
    while there are no more than that.

    Left out is also what cannot be part of one: messages that no step of ours wrote (a client may
    send any), a turn that two runs at once have broken, and what was said beside a turn.
    """
    within = [message for message in messages if not is_aside(message)]
    turns = _turns(within)
    kept = turns if len(turns) <= most else turns[-(most // 2 or 1) :]
    whole = [turn for turn in kept if _is_whole(turn)]
    return [message for turn in whole for message in turn]


def _turns(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Each begins with what the customer said. What stands before the first belongs to none."""
    turns: list[list[AnyMessage]] = []
    before: AnyMessage | None = None
    for message in messages:
        if isinstance(message, HumanMessage) and not isinstance(before, HumanMessage):
            turns.append([])
        if turns:
            turns[-1].append(message)
        before = message
    return turns


def _is_whole(turn: Sequence[AnyMessage]) -> bool:
    try:
        check(turn)
    except BrokenHistory:
        return False
    return True


def removed(ids: Iterable[str | None]) -> list[RemoveMessage]:
    return [RemoveMessage(id=id_) for id_ in ids if id_]


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
