"""A server on loopback that speaks OpenAI's two protocols over sockets, and can fail in many ways.

What it answers is what the offline model's transport answers to the same body, so the two can be
compared; it keeps responses as that does. Behaviours say how the answer goes out: one a request,
in order, the last one for good.

    with serving(status(500), good) as server:
        here("ask", "…", **server.variables())
"""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2

from offline_model import OfflineTransport, sse
from offline_model.conversation import Step
from tests.loopback import LoopbackServer, running

KEY = "sk-test-9f8e7d6c"
HELD_SECONDS = 60

Event = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """What a client sent: header names in lower case; the path behind `/v1`."""

    headers: dict[str, str]
    body: Any
    path: str = ""


@dataclass(frozen=True)
class Reply:
    """What the offline model answers to a request: the events of a stream, or one JSON body."""

    status: int
    content_type: str
    pieces: list[bytes]

    @property
    def events(self) -> list[Event]:
        """The events of Responses, or the chunks of Chat Completions."""
        data = [piece.split(b"data: ", 1)[1] for piece in self.pieces]
        return [json.loads(each) for each in data if each.strip() != b"[DONE]"]

    @property
    def is_last_message(self) -> bool:
        said = b"".join(self.pieces)
        return b"response.output_text.delta" in said or b'"finish_reason":"stop"' in said

    @property
    def is_chat(self) -> bool:
        return b"chat.completion.chunk" in b"".join(self.pieces)


class Exchange(BaseHTTPRequestHandler):
    """One request and what goes back."""

    protocol_version = "HTTP/1.1"
    server: "ResponsesServer"
    asked: Request
    reply: Reply

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.removeprefix("/v1")
        self.asked = Request(headers, json.loads(body), path)
        self.server.requests.append(self.asked)
        self.answer(self.asked.body)
        self.server.next_behaviour()(self)

    def answer(self, body: Any) -> None:
        """Makes the reply to a body, which need not be the one that came."""
        sent = json.dumps(body).encode()
        transport, headers = self.server.transport, self.asked.headers
        self.reply = asyncio.run(_offline(transport, self.path, headers, sent))

    def send(self, status: int, content_type: str, pieces: Sequence[bytes]) -> None:
        """A whole answer, a chunk a piece."""
        self.begin(status, content_type)
        self.go_on(pieces)
        self.wfile.write(b"0\r\n\r\n")

    def begin(self, status: int, content_type: str, **headers: str) -> None:
        self.send_response(status)
        # A client that runs in many event loops must not keep connections of the last one.
        for name, value in {"content-type": content_type, "connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def go_on(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


Behaviour = Callable[[Exchange], None]


class ResponsesServer(LoopbackServer[Behaviour]):
    """`requests` are all that came, oldest first; `asked` is set when one is held."""

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        super().__init__(Exchange, behaviours or [good])
        self.requests: list[Request] = []
        self.connections = 0
        self.hangs_up = False
        self.asked = threading.Event()
        self.transport = OfflineTransport()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def variables(self, **more: str) -> dict[str, str]:
        """The environment that makes the command talk to this server."""
        return variables(self.url, **more)

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]

    def forget(self) -> None:
        """The responses that were kept are gone."""
        self.transport = OfflineTransport()

    def script(self, *steps: Step) -> None:
        """What the model says to the next requests, one a request, as the API checks them."""
        left = list(steps)
        self.transport = OfflineTransport(think=lambda _: left.pop(0))

    def verify_request(self, request: Any, client_address: Any) -> bool:
        self.connections += 1
        return not self.hangs_up


@contextmanager
def serving(*behaviours: Behaviour) -> Iterator[ResponsesServer]:
    """The server while the block runs; what went wrong in itself fails the test."""
    with running(ResponsesServer(behaviours)) as server:
        yield server


def variables(url: str, **more: str) -> dict[str, str]:
    """The environment that makes the command talk to the server at a URL."""
    asked = {"SUPPORT_MODEL": "openai:test-model", "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url}
    return {**asked, **more}


def nobody_listens() -> str:
    """A URL on loopback behind which there is no server."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}/v1"


def good(exchange: Exchange) -> None:
    """The whole reply."""
    reply = exchange.reply
    exchange.send(reply.status, reply.content_type, reply.pieces)


def saying(text: str) -> Behaviour:
    """The reply; where it is the last message, with this text instead of what was asked for."""

    def say(exchange: Exchange) -> None:
        reply = exchange.reply
        instead = _chunks_instead if reply.is_chat else _said_instead
        said = instead(reply.events, text) if reply.is_last_message else reply.events
        end = [sse.DONE] if reply.is_chat else []
        exchange.send(reply.status, reply.content_type, [*map(sse.frame, said), *end])

    return say


def status(code: int, **headers: str) -> Behaviour:
    """An error that repeats the key, as vendors' errors do."""
    error = {"message": f"Incorrect API key provided: {KEY}.", "type": "server_error", "code": None}

    def refuse(exchange: Exchange) -> None:
        # Without it the client would wait for half a second, then a second.
        exchange.begin(code, "application/json", **{"retry_after_ms": "10", **headers})
        exchange.go_on([json.dumps({"error": error}).encode()])
        exchange.wfile.write(b"0\r\n\r\n")

    return refuse


def html(exchange: Exchange) -> None:
    """A page, as a proxy or a wrong address gives."""
    exchange.send(200, "text/html", [b"<!doctype html><title>Hello</title><p>It works!</p>"])


def no_events(exchange: Exchange) -> None:
    """A stream that ends before it begins."""
    exchange.send(200, "text/event-stream", [])


def cut(place: Callable[[list[Event]], int], *, cleanly: bool) -> Behaviour:
    """The events before a place; then the body's proper end, or the connection is gone."""

    def send_half(exchange: Exchange) -> None:
        reply = exchange.reply
        exchange.begin(reply.status, reply.content_type)
        exchange.go_on(reply.pieces[: place(reply.events)])
        if cleanly:
            exchange.wfile.write(b"0\r\n\r\n")

    return send_half


def before_the_end(events: list[Event]) -> int:
    """All is there but the event that says so."""
    return len(events) - 1


def in_the_last_item(events: list[Event]) -> int:
    """Half of the deltas of the last item are missing: `{"order_id":"A` is left of an A-17."""
    if "choices" in events[0]:
        return _in_the_last_call(events)
    last = events[-2]["output_index"]
    deltas = [
        number
        for number, event in enumerate(events)
        if event["type"].endswith(".delta") and event["output_index"] == last
    ]
    return deltas[len(deltas) // 2] + 1


def _in_the_last_call(chunks: list[Event]) -> int:
    """The same for Chat Completions; a message without calls is cut in its text."""
    ends = next(
        n for n, c in enumerate(chunks) if c["choices"] and c["choices"][0]["finish_reason"]
    )
    calls = [n for n, c in enumerate(chunks) if "tool_calls" in str(c["choices"][:1])]
    starts = [n for n in calls if "'id'" in str(chunks[n])] or [0]
    return (starts[-1] + ends) // 2


def refusing(field: str, words: str, **error: Any) -> Behaviour:
    """A server that refuses what has a field (`text.format`: in an object), and answers the rest.

    It is a server that never learned it, or cannot read what it holds.
    """
    told = {"message": words, "type": "invalid_request_error", "param": None, "code": None}
    body = json.dumps({"error": {**told, **error}}).encode()

    def answer(exchange: Exchange) -> None:
        value: Any = exchange.asked.body
        for name in field.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            good(exchange)
        else:
            exchange.send(400, "application/json", [body])

    return answer


def held(exchange: Exchange) -> None:
    """No answer until the server ends, or the client is gone."""
    exchange.server.asked.set()
    exchange.server.released.wait(HELD_SECONDS)


async def _offline(
    transport: OfflineTransport, path: str, headers: dict[str, str], body: bytes
) -> Reply:
    sent = {"authorization": headers.get("authorization", "")}
    request = httpx2.Request("POST", f"http://127.0.0.1{path}", headers=sent, content=body)
    response = await transport.handle_async_request(request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    pieces = [piece async for piece in response.stream]
    return Reply(response.status_code, response.headers["content-type"], pieces)


def _said_instead(events: list[Event], text: str) -> list[Event]:
    """The events of a message, its text exchanged wherever it stands; one delta holds it all."""
    before = next(e["text"] for e in events if e["type"] == "response.output_text.done")
    deltas = [e for e in events if e["type"] == "response.output_text.delta"]
    kept = [e for e in events if e not in deltas[1:]]
    spoken = [{**e, "delta": text} if e is deltas[0] else _exchanged(e, before, text) for e in kept]
    return [{**event, "sequence_number": number} for number, event in enumerate(spoken)]


def _exchanged(value: Any, before: str, text: str) -> Any:
    if isinstance(value, dict):
        return {name: _exchanged(inner, before, text) for name, inner in value.items()}
    if isinstance(value, list):
        return [_exchanged(inner, before, text) for inner in value]
    return text if value == before else value


def _chunks_instead(chunks: list[Event], text: str) -> list[Event]:
    """The same for Chat Completions: the second chunk says it all."""
    first, second, *_ = chunks
    spoken = {**second, "choices": [{**second["choices"][0], "delta": {"content": text}}]}
    ended = [c for c in chunks if not c["choices"] or c["choices"][0]["finish_reason"]]
    return [first, spoken, *ended]
