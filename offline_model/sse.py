"""Server-sent events: the frames a streamed reply is made of."""

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2

DONE = b"data: [DONE]\n\n"  # how Chat Completions end a stream


def frame(event: dict[str, Any]) -> bytes:
    """One event, named after its type where it has one; the text stays UTF-8, as the API's does."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {data}\n\n".encode()


class EventStream(httpx2.AsyncByteStream):
    """A response body that gives one frame at a time."""

    def __init__(self, frames: Iterable[bytes]) -> None:
        self._frames = frames

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for each in self._frames:
            yield each
