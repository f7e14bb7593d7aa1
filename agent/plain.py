"""What may stand in the state: plain JSON that a checkpoint can hold and give back unchanged."""

import math
from typing import Any

DEPTH = 32
INTEGERS = range(-(2**63), 2**64)
SIZE = 500_000  # characters of all texts together


def is_plain(value: Any) -> bool:
    """Whether a value can be kept: no deeper, larger or stranger than a checkpoint takes."""
    return _is_plain(value, DEPTH) and _size(value) <= SIZE


def _is_plain(value: Any, levels: int) -> bool:
    match value:
        case None | bool():
            return True
        case int():
            return value in INTEGERS
        case float():
            return math.isfinite(value)
        case str():
            return type(value) is str and is_text(value)  # a subclass may do anything
        case dict():
            keys = all(isinstance(key, str) and is_text(key) for key in value)
            return levels > 0 and keys and all(_is_plain(v, levels - 1) for v in value.values())
        case list():
            return levels > 0 and all(_is_plain(each, levels - 1) for each in value)
        case _:
            return False


def is_text(text: str) -> bool:
    """Whether a text can be written at all: half of a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value
    return sum(map(_size, inner)) if isinstance(value, dict | list) else 0
