"""What may stand in the state: plain JSON that a checkpoint can hold and give back unchanged."""

import math
from typing import Any

DEPTH = 32
LEAST, MOST = -(2**63), 2**64 - 1  # integers
SIZE = 500_000  # characters of all texts together


def is_plain(value: Any) -> bool:
    """Whether a value can be kept: no deeper, larger or stranger than a checkpoint takes."""
    return _size(value, DEPTH) <= SIZE


def _size(value: Any, levels: int) -> float:
    """Characters of all texts together; without end where something cannot be kept."""
    if isinstance(value, str):  # a subclass may do anything
        return len(value) if type(value) is str and is_text(value) else math.inf
    if isinstance(value, int):
        return 0 if LEAST <= value <= MOST else math.inf
    if isinstance(value, dict) and levels:
        keys = [_size(key, 0) if isinstance(key, str) else math.inf for key in value]
        return sum(keys) + sum([_size(each, levels - 1) for each in value.values()])
    if isinstance(value, list) and levels:
        return sum([_size(each, levels - 1) for each in value])
    fits = value is None or (isinstance(value, float) and math.isfinite(value))
    return 0 if fits else math.inf


def is_text(text: str) -> bool:
    """Whether a text can be written at all: half of a character cannot."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True
