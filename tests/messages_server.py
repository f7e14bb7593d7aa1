"""A server on loopback that speaks Anthropic's Messages API and refuses what that refuses.

What it says is scripted: the calls or the text of one response a request, the last one for good.
All data is invented.

    with speaking([Call("toolu_1", "get_order", ('{"order_id":"A-17"}',))], "Done.") as server:
        here("ask", "…", **server.variables())
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import LoopbackServer, running
from tests.streams import Call, frames, messages

KEY = "sk-ant-test-9f8e7d6c"
FIELDS = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "thinking"),
    *("output_config", "metadata", "temperature", "top_p", "top_k", "stop_sequences"),
}
Said = Sequence[Call] | str | list[bytes]


class Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "MessagesServer"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        refusal = self._refusal(body)
        if refusal:
            error = {"type": "invalid_request_error", "message": refusal}
            self._send(
                400, "application/json", [json.dumps({"type": "error", "error": error}).encode()]
            )
        else:
            self._send(200, "text/event-stream", self.server.next_pieces())

    def _refusal(self, body: Any) -> str:
        keys = (self.headers["x-api-key"], self.headers["authorization"])
        if self.path != "/v1/messages" or not {KEY, f"Bearer {KEY}"}.intersection(keys):
            return "no such place, or no such key"
        if "anthropic-version" not in self.headers:
            return "anthropic-version: header is required"
        if unknown := set(body) - FIELDS:
            return f"{sorted(unknown)}: Extra inputs are not permitted"
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        return self.server.refuses(body) or _misplaced(body["messages"])

    def _send(self, status: int, kind: str, pieces: list[bytes]) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("connection", "close")):
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


def _misplaced(conversation: list[Any]) -> str:
    """Why the API would refuse the conversation: roles, ids, results that are not next."""
    seen: set[str] = set()
    open_: list[str] = []
    for place, message in enumerate(conversation):
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        if not blocks or any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            return f"messages.{place}: text content blocks must be non-empty"
        told = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if sorted(told) != sorted(open_):
            return f"messages.{place}: `tool_use` ids without `tool_result` blocks, or the reverse"
        open_ = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if any(not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id_) for id_ in open_):
            return f"messages.{place}: tool_use.id: String should match pattern"
        if seen.intersection(open_) or len(set(open_)) < len(open_):
            return f"messages.{place}: `tool_use` ids must be unique"
        if any(not isinstance(b["input"], dict) for b in blocks if b["type"] == "tool_use"):
            return f"messages.{place}: tool_use.input: Input should be a valid dictionary"
        seen.update(open_)
    return "messages: the last one has calls without results" if open_ else ""


class MessagesServer(LoopbackServer[Said]):
    """`bodies` are all requests, oldest first. refuses: a reason of one's own to refuse a body."""

    def __init__(self, said: Sequence[Said]) -> None:
        super().__init__(Exchange, said)
        self.bodies: list[Any] = []
        self.refuses: Callable[[Any], str] = lambda body: ""

    def next_pieces(self) -> list[bytes]:
        said: Any = self.next_behaviour()
        if isinstance(said, str):
            return frames(messages([], said).events)
        if all(isinstance(piece, bytes) for piece in said):
            return list(said)
        return frames(messages(said).events)

    def variables(self, **more: str) -> dict[str, str]:
        """The environment that makes the command talk to this server."""
        url = f"http://127.0.0.1:{self.server_port}"
        asked = {"SUPPORT_MODEL": "anthropic:test-model", "ANTHROPIC_API_KEY": KEY}
        return {**asked, "ANTHROPIC_BASE_URL": url, **more}


@contextmanager
def speaking(*said: Said) -> Iterator[MessagesServer]:
    """The server while the block runs."""
    with running(MessagesServer(said)) as server:
        yield server
