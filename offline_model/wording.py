"""What both protocols write the same way: ids, arguments, fragments, a count of tokens."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4


def new_id(prefix: str, digits: int = 32) -> str:
    return f"{prefix}_{uuid4().hex[:digits]}"


def written(arguments: dict[str, Any]) -> str:
    """The arguments of a call as the text that goes out."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def fragments(text: str, size: int) -> Iterator[str]:
    """The text in pieces of `size` characters."""
    return (text[start : start + size] for start in range(0, len(text), size))


def text_of(content: str | list[dict[str, Any]] | None) -> str:
    """What a message says, its parts a line each."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part["text"]) for part in content if part.get("text"))


def tokens_of(value: Any) -> int:
    """About four characters make a token."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text) // 4 + 1 if text else 0
