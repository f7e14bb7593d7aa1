"""Streams as they came, without what they said: for `support-agent stream check`.

Ids, names, kinds and counts stay. Of every other text each letter becomes `n` and each digit `1`,
so that lengths, JSON and its escapes stay what they were, also where a piece ends within them.
"""

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

log = logging.getLogger(__name__)

KEPT = {
    *("type", "id", "item_id", "call_id", "tool_call_id", "tool_use_id", "name", "object", "role"),
    *("status", "model", "code", "finish_reason", "stop_reason", "previous_response_id"),
}
COUNTS = re.compile(r"(^|_)(index|number|tokens|created|at)$")
# Within these a name such as `id` or `name` is the shop's or the customer's.
CONTENT = ("input", "arguments", "metadata")


def cleaned(value: Any, name: str = "", *, content: bool = False) -> Any:
    """A parsed event without its values."""
    match value:
        case dict():
            inner = content or name in CONTENT
            return {n: cleaned(v, n, content=inner) for n, v in value.items()}
        case list():  # nameless: under `input` a request to Responses has its items, ids and all
            return [cleaned(each, content=content) for each in value]
        case str():
            return value if name in KEPT and not content and len(value) < 200 else _masked(value)
        case bool() | None:
            return value
    return value if COUNTS.search(name) and not content else 1


def _masked(text: str) -> str:
    return "".join(
        "1" if c.isdigit() else c if c.isascii() and not c.isalpha() else "n" for c in text
    )


def frame(data: str) -> str:
    """One event as it is kept."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return f"data: {data if data == '[DONE]' else _masked(data)}\n\n"
    return f"data: {json.dumps(cleaned(event))}\n\n"


async def keep(folder: Path, name: str, received: Sequence[str]) -> None:
    """Writes a file for one response. What cannot be written is logged, never raised."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    try:
        await asyncio.to_thread(_write, folder / f"{moment}-{name}-{uuid4().hex[:8]}.sse", received)
    except (OSError, RecursionError) as error:
        log.warning("a stream was not recorded (%s)", type(error).__name__)


def _write(path: Path, received: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text("".join(map(frame, received)), encoding="utf-8")
