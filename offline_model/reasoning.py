"""Reasoning items: what a reasoning model thought before it called or answered.

A client that keeps the history itself gets them encrypted and sends them back, each before the
items that it led to. Source: `openai.types.responses.response_reasoning_item`, and the API's own
error messages as clients report them.
"""

import base64
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from uuid import uuid4

from offline_model.errors import ApiRefusal

Item = dict[str, Any]

ENCRYPTED = "reasoning.encrypted_content"
TOKENS = 16  # that a thought is said to have cost
HEX = 32  # digits of an id; what a thought led to has its digits, and more


def thought(sent: Item) -> Item | None:
    """A new reasoning item, with its content where the request asks for that.

    The stand-in reasons where a request speaks of it; a vendor's reasoning model always does.
    """
    encrypted = ENCRYPTED in (sent.get("include") or ())
    if not encrypted and not sent.get("reasoning"):
        return None
    item_id = f"rs_{uuid4().hex}"
    content = {"encrypted_content": _sealed(item_id)} if encrypted else {}
    return {"type": "reasoning", "id": item_id, "summary": [], **content}


def item_id(prefix: str, thought: Item | None) -> str:
    """The id of a new item; it tells which thought led to it."""
    led = thought["id"].removeprefix("rs_") + uuid4().hex[:8] if thought else uuid4().hex
    return f"{prefix}_{led}"


def check(items: Sequence[Item], is_kept: Callable[[str], bool]) -> None:
    """Raises the refusal of reasoning that cannot be read, and of an item torn from its own."""
    here = {item["id"] for item in items if item.get("type") == "reasoning"}
    for item, after in zip(items, [*items[1:], {}], strict=True):
        if item.get("type") == "reasoning":
            _readable(item, is_kept)
            if not _follows(after):
                raise ApiRefusal(
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required "
                    "following item.",
                    "input",
                )
        elif (needed := _led_to(item)) and needed not in here:
            raise ApiRefusal(
                f"Item '{item['id']}' of type '{item['type']}' was provided without its required "
                f"'reasoning' item: '{needed}'.",
                "input",
            )


def _led_to(item: Item) -> str:
    digits = str(item.get("id") or "").partition("_")[2]
    return f"rs_{digits[:HEX]}" if len(digits) > HEX else ""


def _follows(item: Item) -> bool:
    return item.get("type") in ("function_call", "reasoning") or item.get("role") == "assistant"


def _readable(item: Item, is_kept: Callable[[str], bool]) -> None:
    content = item.get("encrypted_content")
    if content is None and not is_kept(item["id"]):
        raise ApiRefusal(
            f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set "
            "to false. Try again with `store` set to true, or remove this item from your input.",
            "input",
            status=404,
        )
    if content is not None and content != _sealed(item["id"]):
        raise ApiRefusal(
            f"The encrypted content for item {item['id']} could not be verified. Reason: "
            "Encrypted content could not be decrypted or parsed.",
            code="invalid_encrypted_content",
        )


def _sealed(reasoning_id: str) -> str:
    return base64.b64encode(sha256(b"offline " + reasoning_id.encode()).digest()).decode()
