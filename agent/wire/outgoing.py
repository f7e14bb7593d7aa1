"""A history as the protocol takes it that it goes out on, whichever protocol wrote it."""

import json
from collections.abc import Sequence
from typing import Any, TypeGuard

from langchain_core.messages import AIMessage, AnyMessage

from agent.wire import ids, names

Block = dict[str, Any]
THOUGHTS = ("reasoning", "thinking", "redacted_thinking")


def for_responses(
    messages: Sequence[AnyMessage], *, reasoning: bool = True, chained: bool = False
) -> list[AnyMessage]:
    """Each call as an item of its own message, and no reasoning but what the server can read.

    A call of another protocol is written out, since the client would take one whose id was there
    before for a repetition. Without its reasoning an item must not be sent under its id.
    """
    sent = ids.sendable(messages, names.OPENAI, kept=_kept(messages) if chained else 0)
    return [_items(m, reasoning) if _calls(m) else m for m in sent]


def for_chat(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """As they are; LangChain writes calls and results, and leaves the rest out."""
    return ids.sendable(messages, names.OPENAI)


def for_messages(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """As for others, with ids that Anthropic takes: none of them twice in a conversation."""
    return for_others(ids.sendable(messages, names.MESSAGES, unique=True))


def for_others(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Without what only the Responses API knows: items of calls, and its reasoning."""
    return [_plain(m) if _calls(m) else m for m in messages]


def _kept(messages: Sequence[AnyMessage]) -> int:
    """How many messages the vendor keeps: all up to its newest response."""
    responses = (
        place
        for place, message in enumerate(messages, 1)
        if isinstance(message, AIMessage)
        and str(message.response_metadata.get("id")).startswith("resp_")
    )
    return max(responses, default=0)


def _calls(message: AnyMessage) -> TypeGuard[AIMessage]:
    return isinstance(message, AIMessage) and bool(message.tool_calls)


def _blocks(message: AnyMessage) -> list[Block]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}] if message.content else []
    return [block for block in message.content if isinstance(block, dict) and "type" in block]


def _plain(message: AIMessage) -> AIMessage:
    kept = [block for block in _blocks(message) if not _is_item(block)]
    return message.model_copy(update={"content": kept or ""})


def _items(message: AIMessage, reasoning: bool) -> AIMessage:
    blocks = _blocks(message)
    kept = [b for b in blocks if b["type"] not in THOUGHTS or _is_readable(b, reasoning)]
    if len(kept) < len(blocks):
        kept = [{name: v for name, v in block.items() if name != "id"} for block in kept]
    written = {b.get("call_id") for b in kept if b["type"] == "function_call"}
    kept += [_item(dict(call)) for call in message.tool_calls if call["id"] not in written]
    return message if kept == message.content else message.model_copy(update={"content": kept})


def _is_readable(block: Block, reasoning: bool) -> bool:
    """Reasoning that the vendor kept stands in the history as an id alone."""
    return reasoning and bool(block.get("encrypted_content"))


def _is_item(block: Block) -> bool:
    kept_by_id = str(block.get("id") or "").startswith("rs_")
    return block["type"] == "function_call" or (block["type"] == "reasoning" and kept_by_id)


def _item(call: dict[str, Any]) -> Block:
    return {
        "type": "function_call",
        "call_id": call["id"],
        "name": call["name"],
        "arguments": json.dumps(call["args"], ensure_ascii=False),
    }
