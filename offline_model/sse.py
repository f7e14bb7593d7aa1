"""Server-sent events: the frames a streamed reply is made of."""

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2


def frame(event: dict[str, Any]) -> bytes:
    """One event, named after its type; the text stays UTF-8, as the API sends it."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


class EventStream(httpx2.AsyncByteStream):
    """A response body that gives one frame at a time."""

    def __init__(self, events: Iterable[dict[str, Any]]) -> None:
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            yield frame(event)
