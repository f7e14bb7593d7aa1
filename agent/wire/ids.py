"""Ids of calls as a server takes them; everywhere else the model's own stay."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

OURS = re.compile(r"call_[0-9a-f]{48}")


def sendable(
    messages: Sequence[AnyMessage], fits: re.Pattern[str], *, unique: bool = False, kept: int = 0
) -> list[AnyMessage]:
    """The messages with ids that fit, in a call and its result alike.

    unique: an id that comes again in a later response, for another call, is replaced too. kept: how
    many messages the server has itself; results that come next name calls as it does.
    """
    times: Counter[str] = Counter()
    ids: dict[str, str] = {}
    sent: list[AnyMessage] = []
    for place, message in enumerate(messages):
        if isinstance(message, AIMessage) and message.tool_calls:
            own = [call["id"] or "" for call in message.tool_calls]
            times.update(own)
            count = times if unique else Counter(own)
            fit = {id_: _fit(id_, count[id_], fits) for id_ in own} if place >= kept else {}
            ids = {old: new for old, new in fit.items() if old != new}
        sent.append(_renamed(message, ids))
    return sent


def meant(messages: Sequence[AnyMessage], sent: Sequence[AnyMessage]) -> dict[str, str]:
    """The calls of the last turn under other ids: `round/call_id`, by the id that was sent."""
    found: dict[str, str] = {}
    round_ = 0
    for ours, theirs in zip(messages, sent, strict=True):
        if isinstance(ours, HumanMessage):
            found, round_ = {}, 0
        if isinstance(ours, AIMessage) and isinstance(theirs, AIMessage) and ours.tool_calls:
            round_ += 1
            pairs = zip(ours.tool_calls, theirs.tool_calls, strict=True)
            found |= {str(b["id"]): f"{round_}/{a['id']}" for a, b in pairs if a["id"] != b["id"]}
    return found


def with_own(response: AIMessage, names: dict[str, str]) -> AIMessage:
    """A last message whose cards name calls as `meant` does, not as they were sent."""
    if not names or response.tool_calls:
        return response
    said: Any = response.content
    own = _own(said, names) if isinstance(said, str) else [_own(block, names) for block in said]
    return response.model_copy(update={"content": own})


def _own(said: Any, names: dict[str, str]) -> Any:
    if isinstance(said, dict):
        return {**said, "text": _own(said["text"], names)} if "text" in said else said
    for sent, own in names.items():
        said = said.replace(json.dumps(sent), json.dumps(own, ensure_ascii=False))
    return said


def _fit(id_: str, time: int, fits: re.Pattern[str]) -> str:
    """Itself where it can be; one that looks like ours is replaced too, so that none meet."""
    if time == 1 and fits.fullmatch(id_) and not OURS.fullmatch(id_):
        return id_
    return f"call_{sha256(f'{time} {id_}'.encode()).hexdigest()[:48]}"


def _renamed(message: AnyMessage, ids: dict[str, str]) -> AnyMessage:
    if isinstance(message, ToolMessage) and message.tool_call_id in ids:
        return message.model_copy(update={"tool_call_id": ids[message.tool_call_id]})
    if not isinstance(message, AIMessage) or not ids:
        return message
    calls = [{**call, "id": ids.get(call["id"] or "", call["id"])} for call in message.tool_calls]
    said = message.content
    content = said if isinstance(said, str) else [_block(each, ids) for each in said]
    return message.model_copy(update={"tool_calls": calls, "content": content})


def _block(block: Any, ids: dict[str, str]) -> Any:
    """The item of a call, where the content holds one."""
    if not isinstance(block, dict) or block.get("call_id") not in ids:
        return block
    return {**block, "call_id": ids[block["call_id"]]}
