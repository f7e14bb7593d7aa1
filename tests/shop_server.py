"""A server on loopback that plays a shop's API (`tools/shop/http.py`) with the demo shop's data.

Behaviours say how an answer goes out: one a request, in order, the last one for good.

    with serving(status(500), good) as server:
        shop = HttpShop(server.url, SecretStr(TOKEN))

    python -m tests.shop_server COMMAND…   runs a command whose shop is behind this API
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import LoopbackServer, running
from tests.shop_api import CUSTOMERS, ORDERS, SHIPMENTS, page_of
from tests.shop_writes import Changes

TOKEN = "tok-5b1d7c20e4"
HELD_SECONDS = 60


class Exchange(BaseHTTPRequestHandler):
    """One request and what goes back. `status` and `content` are what a good answer would be."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for its own headers' receipt
    server: "ShopServer"
    path_parts: list[str]
    query: dict[str, str]
    status: int
    content: Any

    def do_GET(self) -> None:
        self._exchange(self._answer)

    def do_POST(self) -> None:
        self._exchange(self._change)

    def do_PUT(self) -> None:
        self._exchange(self._change)

    def _exchange(self, answer: Callable[[], tuple[int, Any]]) -> None:
        url = urlsplit(self.path)
        self.path_parts = [unquote(part) for part in url.path.strip("/").split("/")[1:]]
        self.query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.server.requests.append(self.path)
        known = self.headers["authorization"] == f"Bearer {TOKEN}"
        self.status, self.content = answer() if known else (401, {"error": "unauthorized"})
        self.server.next_behaviour()(self)

    def _change(self) -> tuple[int, Any]:
        length = int(self.headers["content-length"] or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionAbortedError  # who asked was killed in the middle of it
        if self.headers["content-type"] != "application/json":
            return 415, {"error": "JSON_ONLY"}
        key = self.headers["idempotency-key"] or ""
        return self.server.changes.take(key, self.command, self.path_parts, body)

    def _answer(self) -> tuple[int, Any]:
        match self.path_parts:
            case ["operations", key] if key in self.server.changes.operations:
                return 200, self.server.changes.operations[key]
            case ["customers", customer_id] if customer_id in CUSTOMERS:
                return 200, CUSTOMERS[customer_id]
            case ["orders"] if "number" in self.query:
                found = self.server.changes.orders.get(self.query["number"])
                return 200, {"orders": [found] if found else [], "next": None}
            case ["orders"]:
                cursor = self.query.get("cursor", "at-0")
                return 200, page_of(self.server.changes.orders, self.query["customer"], cursor)
            case ["orders", internal_id, "shipments"] if internal_id in SHIPMENTS:
                return 200, {"shipments": SHIPMENTS[internal_id]}
        return 404, {"error": "not found"}

    def send(self, status: int, content: Any, **headers: str) -> None:
        self.send_body(status, json.dumps(content).encode(), headers)

    def send_body(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, missing: int = 0
    ) -> None:
        """`missing` bytes of the promised length do not come."""
        self.close_connection = self.server.hangs_up or missing > 0
        self.send_response(status)
        named = {
            "content-type": "application/json",
            "content-length": str(len(body) + missing),
            "connection": "close" if self.close_connection else "keep-alive",
            **(headers or {}),
        }
        for name, value in named.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


Behaviour = Callable[[Exchange], None]


class ShopServer(LoopbackServer[Behaviour]):
    """`requests` are the paths that were asked for, oldest first; `changes` what was made of them.

    `hangs_up`: connections end with their answer, so that a client that nobody closes keeps none.
    """

    request_queue_size = 128

    def __init__(self, behaviours: Sequence[Behaviour], *, hangs_up: bool) -> None:
        super().__init__(Exchange, behaviours or [good])
        self.hangs_up = hangs_up
        self.requests: list[str] = []
        self.changes = Changes()
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api"

    @property
    def variables(self) -> dict[str, str]:
        """The settings that put this shop behind the agent."""
        return {"SUPPORT_SHOP_URL": self.url, "SUPPORT_SHOP_TOKEN": TOKEN}

    def verify_request(self, request: Any, client_address: Any) -> bool:
        self.connections += 1
        return True


@contextmanager
def serving(*behaviours: Behaviour, hangs_up: bool = True) -> Iterator[ShopServer]:
    """The server while the block runs; what went wrong in itself fails the test."""
    with running(ShopServer(behaviours, hangs_up=hangs_up)) as server:
        yield server


def good(exchange: Exchange) -> None:
    exchange.send(exchange.status, exchange.content)


def status(code: int, **headers: str) -> Behaviour:
    """Another status than the answer's, with a body that repeats what it should not."""
    said = {"error": "no", "token": TOKEN, "customer": "C-1002"}
    return lambda exchange: exchange.send(code, said, **headers)


def body(content: bytes, **headers: str) -> Behaviour:
    """Something else instead of the answer."""
    return lambda exchange: exchange.send_body(200, content, headers)


def changed(change: Callable[[Any], Any]) -> Behaviour:
    """The answer with something in it changed; the server's own data stay as they are."""

    def send_changed(exchange: Exchange) -> None:
        content = json.loads(json.dumps(exchange.content))
        exchange.send(exchange.status, change(content) or content)

    return send_changed


def cut(exchange: Exchange) -> None:
    """Half of the answer, then the connection ends."""
    whole = json.dumps(exchange.content).encode()
    exchange.send_body(200, whole[: len(whole) // 2], missing=len(whole) - len(whole) // 2)


def hung_up(exchange: Exchange) -> None:
    """The connection ends without an answer."""
    exchange.close_connection = True


def held(exchange: Exchange) -> None:
    """No answer until the server ends."""
    exchange.server.released.wait(HELD_SECONDS)
    exchange.close_connection = True


def together(count: int) -> Behaviour:
    """No request is answered before so many are there."""
    barrier = threading.Barrier(count)

    def wait(exchange: Exchange) -> None:
        barrier.wait(HELD_SECONDS)
        good(exchange)

    return wait


def about(order_id: str, behaviour: Behaviour) -> Behaviour:
    """The behaviour where this order is asked for, by its number or by its internal id."""
    internal = ORDERS[order_id]["id"]

    def choose(exchange: Exchange) -> None:
        asked = exchange.query.get("number") == order_id or internal in exchange.path_parts
        (behaviour if asked else good)(exchange)

    return choose


if __name__ == "__main__":
    with serving() as _server:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **_server.variables}).returncode)
