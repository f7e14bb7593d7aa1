"""The three protocols that are understood, and how their events go over the wire."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

from agent.wire.assemble import Assembler, Body, Event, chat, messages, responses
from agent.wire.names import Name

SIZE = 20_000_000  # bytes of one response
DONE = "[DONE]"  # how Chat Completions end a stream


@dataclass(frozen=True)
class Protocol:
    """path: how the URL of a request ends. arguments: where those of its calls stand in a body.

    begins: how a first event is told from others'.
    """

    name: Name
    path: str
    assembler: type[Assembler]
    check: Callable[[Body], None]
    events: Callable[[Body], Iterator[Event]]
    arguments: Callable[[Body], Iterator[tuple[Body, str]]]
    begins: Callable[[str], bool]
    last: str = ""

    def frames(self, body: Body) -> Iterator[bytes]:
        """The canonical stream of a whole response. ASCII: half of a character goes through too."""
        for event in self.events(body):
            kind = f"event: {event['type']}\n" if "type" in event else ""
            yield f"{kind}data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
        if self.last:
            yield f"data: {self.last}\n\n".encode()


PROTOCOLS = (
    Protocol(
        *("responses", "/responses", responses.Assembler, responses.check, responses.events),
        arguments=responses.arguments,
        begins=lambda kind: kind.startswith("response."),
    ),
    Protocol(
        *("chat", "/chat/completions", chat.Assembler, chat.check, chat.events),
        arguments=chat.arguments,
        begins=lambda kind: not kind,
        last=DONE,
    ),
    Protocol(
        *("messages", "/messages", messages.Assembler, messages.check, messages.events),
        arguments=messages.arguments,
        begins=lambda kind: kind.startswith(("message_", "content_block_", "ping")),
    ),
)


def of_path(path: str) -> Protocol | None:
    """The protocol of a request."""
    return next((each for each in PROTOCOLS if path.endswith(each.path)), None)


def of_event(event: Any) -> Protocol | None:
    """The protocol of a stream, by an event of it."""
    kind = str(event.get("type", "")) if isinstance(event, dict) else "none"
    return next((each for each in PROTOCOLS if each.begins(kind)), None)


class Events:
    """The data of each event of a body of at most SIZE bytes, as text."""

    def __init__(self, body: AsyncIterable[bytes] | bytes) -> None:
        # The parser asks for this content type; what the server said is judged by what it sent.
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        nowhere = httpx2.Request("GET", "http://stream.invalid")
        response = httpx2.Response(200, headers=headers, content=body, request=nowhere)
        self._source = httpx2.EventSource(response, max_event_size=None)

    def __iter__(self) -> Iterator[str]:
        return (event.data for event in self._source if event.data)

    async def __aiter__(self) -> AsyncIterator[str]:
        async for event in self._source:
            if event.data:
                yield event.data
