"""A server on loopback that speaks all three protocols, and fails at the socket as it is told to.

What it says is written by the tests (`tests.streams`), not by the product. A behaviour answers one
request, in order; behind the last one the server is a model that works: it looks up each order of
the question, then answers with a card for each result.

    with serving(cut(says(A17), "reset")) as server:
        graph_of(settings=server.settings("chat"))
"""

import json
import re
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from agent.settings import Settings
from tests import vendors
from tests.loopback import LoopbackServer, running
from tests.streams import BUILD, CHUNK, MESSAGE, Call, Event, Stream, frames
from tests.vendors import Asked

Body = dict[str, Any]
End = Literal["whole", "closed", "torn", "reset", "silent"]
ORDER = re.compile(r"\b[A-Z]+(?:-\d+)?\b(?!')")
HELD_SECONDS = 30
MODELS = {"responses": "openai:m", "chat": "openai:m", "messages": "anthropic:m"}


@dataclass(frozen=True)
class Told:
    """One response before it goes out: `stream` where a stream was asked for, else `body`.

    until: only what comes before this text goes out, and no half of an event. end: how it ends:
    as HTTP should, by FIN between two chunks or within one, by RST, or not at all.
    size: bytes at a time, 0 for an event a piece.
    """

    stream: list[Event]
    body: Body
    done: bool = False
    until: str = ""
    end: End = "whole"
    size: int = 0


Behaviour = Callable[["Exchange"], None]
Make = Callable[[Asked], Told]


class Exchange(BaseHTTPRequestHandler):
    """One request and what goes back."""

    protocol_version = "HTTP/1.1"
    server: "FaultServer"
    asked: Asked

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self.asked = vendors.read(self.path, headers, body)
        except vendors.Refused as refused:
            self.server.refused.append(str(refused))
            return self.error(400, message=str(refused))
        self.server.requests.append(self.asked)
        return self.server.next_behaviour()(self)

    def error(self, status: int, *, message: str = "It failed.", **headers: str) -> None:
        error = {"type": "invalid_request_error" if status < 429 else "api_error", "code": None}
        body = {"type": "error", "error": {**error, "message": message}}
        # A client would wait for half a second, then a second.
        self.begin(status, "application/json", **{"retry_after_ms": "10", **headers})
        self.piece(json.dumps(body).encode())
        self.end("whole")

    def tell(self, told: Told) -> None:
        """A response, as whole as it is to be."""
        number = len(self.server.requests)
        if self.asked.streamed:
            self.begin(200, "text/event-stream")
            pieces = frames(told.stream, done=told.done)
        else:
            self.begin(200, "application/json")
            pieces = [json.dumps(told.body).encode()]
        for piece in _pieces(pieces, told):
            # As at the vendors, no id comes twice.
            self.piece(re.sub(rb'"(resp|fc|msg|chatcmpl)[_-](?=\d)', rb"\g<0>%d_" % number, piece))
        self.end(told.end)

    def begin(self, status: int, content_type: str, **headers: str) -> None:
        self.send_response(status)
        # A client that runs in many event loops must not keep connections of the last one.
        for name, value in {"content-type": content_type, "connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def piece(self, piece: bytes) -> None:
        """One chunk, and one packet where the kernel lets it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def end(self, how: End) -> None:
        self.close_connection = True
        if how == "whole":
            self.wfile.write(b"0\r\n\r\n")
        elif how == "torn":
            self.wfile.write(b"40\r\ndata: ")  # of 64 bytes
        elif how == "silent":
            self.server.released.wait(HELD_SECONDS)
        elif how == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


def _pieces(pieces: Sequence[bytes], told: Told) -> Iterator[bytes]:
    end = told.until.encode()
    for piece in pieces:
        if end and end in piece:
            if len(pieces) == 1:
                yield piece.partition(end)[0]
            return
        size = told.size or len(piece)
        yield from (piece[n : n + size] for n in range(0, len(piece), size))


class FaultServer(LoopbackServer[Behaviour]):
    """`requests` are all that came and were taken; `refused` what was said to the others."""

    def __init__(self, behaviours: Sequence[Behaviour]) -> None:
        super().__init__(Exchange, behaviours)
        self.requests: list[Asked] = []
        self.refused: list[str] = []
        self._for_good: Behaviour = working

    def behave(self, *behaviours: Behaviour, for_good: Behaviour | None = None) -> None:
        """How the next requests are answered, and all behind them."""
        self._behaviours = list(behaviours)
        self._for_good = for_good or working

    def next_behaviour(self) -> Behaviour:
        with self._lock:
            return self._behaviours.pop(0) if self._behaviours else self._for_good

    def settings(self, name: str, **more: Any) -> Settings:
        """What leads to this server in one of the protocols."""
        vendor = MODELS[name].partition(":")[0]
        url = f"http://127.0.0.1:{self.server_port}" + ("/v1" if vendor == "openai" else "")
        online = {f"{vendor}_api_key": vendors.KEY, f"{vendor}_base_url": url}
        api = {} if name == "messages" else {"openai_api": name}
        return Settings(**{"model": MODELS[name], **online, **api, **more})


@contextmanager
def serving(*behaviours: Behaviour) -> Iterator[FaultServer]:
    """The server while the block runs; a request that a vendor would refuse fails the test."""
    with running(FaultServer(behaviours)) as server:
        yield server
    assert server.refused == []


# What is said.


def says(*calls: Call, text: str = "", mixed: Sequence[int] = (), **usage: int) -> Make:
    """A response with calls, or text, or both. mixed: which item each next event is of."""

    def make(asked: Asked) -> Told:
        stream = BUILD[asked.name](calls, text, **usage)
        return Told(stream.mixed(mixed), _body(asked.name, stream, calls, text), stream.done)

    return make


def _body(name: str, stream: Stream, calls: Sequence[Call], text: str) -> Body:
    """What stands in the body of a response that is not streamed."""
    if name == "responses":
        return dict(stream.last[-1]["response"])
    if name == "chat":
        return _chat_body(stream, calls, text)
    content: list[Body] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": _closed(call.text)}
        for call in calls
    ]
    end = stream.last[0]
    return {**MESSAGE, "content": content, **end["delta"], "usage": end["usage"]}


def _closed(text: str) -> Any:
    """The input that arguments are; what was cut is closed as the vendor does."""
    with suppress(ValueError):
        return json.loads(text or "{}")
    with suppress(ValueError):
        return json.loads(f'{text}"}}')
    return {}


def _chat_body(stream: Stream, calls: Sequence[Call], text: str) -> Body:
    message: Body = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.text},
            }
            for call in calls
        ]
    end, used = stream.last
    choice = {"index": 0, "message": message, "logprobs": None}
    choice["finish_reason"] = end["choices"][0]["finish_reason"]
    about = {**CHUNK, "object": "chat.completion"}
    return {**about, "choices": [choice], "usage": used["usage"]}


def whole(make: Make, **how: Any) -> Behaviour:
    """A response that goes out as it is; how: fields of `Told`."""

    def tell(exchange: Exchange) -> None:
        exchange.tell(replace(make(exchange.asked), **how))

    return tell


def changed(make: Make, change: Callable[[str, Told], Told]) -> Behaviour:
    """A response that something else was made of."""

    def tell(exchange: Exchange) -> None:
        exchange.tell(change(exchange.asked.name, make(exchange.asked)))

    return tell


def working(exchange: Exchange) -> None:
    """The model that works."""
    asked = exchange.asked
    whole(finishing(asked) if asked.results else looking_up(asked))(exchange)


def looking_up(asked: Asked) -> Make:
    number = len(asked.batches)
    orders = dict.fromkeys(ORDER.findall(asked.question))
    return says(*(delivery(f"call_{number}_{n}", order) for n, order in enumerate(orders)))


def finishing(asked: Asked) -> Make:
    cards = [{"call_id": id_, "text": "{order_id}: {parcels}"} for id_, _ in asked.results]
    return says(text=json.dumps({"locale": "en", "opening": "", "cards": cards, "closing": ""}))


def delivery(call_id: str, order_id: str) -> Call:
    """A call in three pieces; what comes before the last names another order, or is no JSON."""
    text = json.dumps({"order_id": order_id}, separators=(",", ":"))
    head, tail = text[: len('{"order_id":"A')], text[len('{"order_id":"A') :]
    return Call(call_id, "get_delivery", (head[:5], head[5:], tail))


# Answers that are none.


def status(code: int, **headers: str) -> Behaviour:
    def refuse(exchange: Exchange) -> None:
        exchange.error(code, **headers)

    return refuse


def page(exchange: Exchange) -> None:
    """HTML, as a proxy or a wrong address gives."""
    exchange.begin(200, "text/html")
    exchange.piece(b"<!doctype html><title>Hello</title><p>It works!</p>")
    exchange.end("whole")


def reset_at_once(exchange: Exchange) -> None:
    exchange.end("reset")


def silent(exchange: Exchange) -> None:
    """Not a byte."""
    exchange.end("silent")
