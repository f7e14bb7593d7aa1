"""A call that was refused for its arguments, corrected once from what the refusal says."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from offline_model.conversation import Turn


def repaired(turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls to make again, each with better arguments and only once."""
    seen: list[tuple[str, str]] = []
    for call in turn.calls:
        same = (call.name, _plain(str(call.given)))
        if (call.error or {}).get("kind") == "invalid_arguments" and same not in seen:
            offered = re.findall(r"'([^']+)'", str((call.error or {}).get("message")))
            named = [
                option for option in offered if option.lower().rstrip("s") in turn.text.lower()
            ]
            yield call.name, {k: _better(v, named) for k, v in call.given.items()}
        seen.append(same)


def _better(value: Any, named: list[str]) -> Any:
    """What the refusal offers and the customer named, else an id in its plainest spelling."""
    if isinstance(value, list):
        return [_better(entry, named) for entry in value]
    return value if not isinstance(value, str) or value in named else (named or [_plain(value)])[0]


def _plain(text: str) -> str:
    """Without spaces and signs before it, with plain dashes, in capitals."""
    dashes = ("-" if unicodedata.category(char) == "Pd" else char for char in text)
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", "".join(dashes))).upper().lstrip("#")
