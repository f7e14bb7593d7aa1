"""JSON as every conforming reader reads it, or not at all."""

import json
from decimal import Decimal
from typing import Any

from agent.plain import is_plain

SPACE = " \t\r\n"  # what JSON calls space
SEAL = "not one strict JSON object"


class NotStrictJson(ValueError):
    """JSON that a lenient reader might accept, each reader in its own way."""


def parse_strictly(text: str) -> dict[str, Any]:
    """Read a JSON object as every conforming reader would; "" is the empty object.

    Raises NotStrictJson for anything else: a repeated key, a second value behind the first,
    a number that would lose digits, a list, null.
    """
    value = decode(text if text.strip(SPACE) else "{}")
    if not isinstance(value, dict):
        raise NotStrictJson("The arguments are not a JSON object.")
    if not is_plain(value):
        raise NotStrictJson("The arguments are nested too deeply, too large, or no text.")
    return value


def decode(text: str) -> Any:
    """Any JSON value. Raises NotStrictJson where two readers might read two."""
    try:
        return _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise NotStrictJson(f"It is not JSON ({error}).") from None
    except (RecursionError, ArithmeticError):
        raise NotStrictJson("It is nested too deeply, or a number in it is too large.") from None


def sealed(text: str) -> dict[str, Any]:
    """Arguments as every client reads them: what is no strict JSON object is sealed in one.

    Clients refuse a whole response over such arguments, or parse them and drop their text.
    """
    try:
        return parse_strictly(text)
    except NotStrictJson:
        return {SEAL: text}


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values under one name, readers choose differently."""
    if len(dict(pairs)) != len(pairs):
        raise NotStrictJson("A key stands twice in one object.")
    return dict(pairs)


def _refuse(constant: str) -> None:
    raise NotStrictJson(f"{constant} is not JSON.")


def _exact(text: str) -> float:
    if not Decimal(text) == Decimal(repr(float(text))):
        raise NotStrictJson(f"The number {text[:40]} would lose digits.")
    return float(text)


def _whole(text: str) -> int:
    if len(text) > 20:
        raise NotStrictJson(f"The number {text[:40]} is too large.")
    return int(text)


_STRICT = json.JSONDecoder(
    object_pairs_hook=unique, parse_constant=_refuse, parse_float=_exact, parse_int=_whole
)
