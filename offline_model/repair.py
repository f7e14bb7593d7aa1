"""A call that was refused for its arguments, corrected once from what the refusal says."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from offline_model.conversation import Call, Turn
from offline_model.matching import Toolbox


def repaired(turn: Turn, toolbox: Toolbox) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls to make again, each with better arguments and only once."""
    refused = [call for call in turn.calls if (call.error or {}).get("kind") == "invalid_arguments"]
    for call in refused:
        tried = [other.given for other in turn.calls if other.name == call.name]
        better = _better(call, turn.text, toolbox)
        if better not in tried and sum(_alike(given, call.given) for given in tried) < 2:
            yield call.name, better


def _better(call: Call, text: str, toolbox: Toolbox) -> dict[str, Any]:
    message = str((call.error or {}).get("message", ""))
    offered = re.findall(r"'([^']+)'", message)
    return {name: _corrected(value, offered, text) for name, value in call.given.items()}


def _corrected(value: Any, offered: list[str], text: str) -> Any:
    if isinstance(value, list):
        return [_corrected(entry, offered, text) for entry in value]
    if not isinstance(value, str) or value in offered:
        return value
    said = text.lower()
    named = [option for option in offered if option.lower().rstrip("s") in said]
    return named[0] if named else plain_id(value)


def plain_id(text: str) -> str:
    """An id in its plainest spelling: no spaces, plain dashes, capitals, no sign before it."""
    dashes = (" -" if unicodedata.category(c) == "Pd" else c for c in text)
    kept = unicodedata.normalize("NFKC", "".join(dashes))
    return re.sub(r"\s", "", kept).upper().lstrip("#")


def _alike(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return [plain_id(str(v)) for v in left.values()] == [plain_id(str(v)) for v in right.values()]
