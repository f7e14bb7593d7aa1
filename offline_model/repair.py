"""A call that was refused, corrected once from what the refusal says."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from offline_model.conversation import WORDS, Turn


def repaired(turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls to make again, each with better arguments and only once."""
    seen: list[tuple[str, str]] = []
    for call in turn.calls:
        same, error = (call.name, _plain(str(call.given))), call.error or {}
        message = str(error.get("message"))
        if error.get("kind") == "not_found" and (rest := _without(call.given, message)):
            yield call.name, rest
        if error.get("kind") == "invalid_arguments" and same not in seen:
            offered = re.findall(r"'([^']+)'", message)
            named = [
                option for option in offered if option.lower().rstrip("s") in turn.text.lower()
            ]
            ids = {k: _better(v, named) for k, v in call.given.items() if k not in WORDS}
            yield call.name, call.given | ids
        seen.append(same)


def _without(given: dict[str, Any], message: str) -> dict[str, Any]:
    """The arguments without the entries of a list that were not found; empty if none is left."""
    lists = {name: value for name, value in given.items() if isinstance(value, list)}
    missed = {word.strip("'\".,:;") for word in message.split()}
    rest = {
        name: [e for e in value if _plain(str(e)) not in missed] for name, value in lists.items()
    }
    return {**given, **rest} if rest != lists and all(rest.values()) else {}


def _better(value: Any, named: list[str]) -> Any:
    """What the refusal offers and the customer named, else an id in its plainest spelling."""
    if isinstance(value, list):
        return [_better(entry, named) for entry in value]
    return value if not isinstance(value, str) or value in named else (named or [_plain(value)])[0]


def _plain(text: str) -> str:
    """Without spaces and signs before it, with plain dashes, in capitals."""
    dashes = ("-" if unicodedata.category(char) == "Pd" else char for char in text)
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", "".join(dashes))).upper().lstrip("#")
