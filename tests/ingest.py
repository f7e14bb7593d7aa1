"""LangSmith on this machine: a server that takes what the SDK sends, and says how it was asked."""

import email.parser
import email.policy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import zstandard
from langsmith import configure
from langsmith.utils import get_env_var

from agent import tracing
from tests import commands

Run = dict[str, Any]


@dataclass
class Ingest:
    """runs: by their ids, as posts and patches made them. sent: every byte, unpacked. asked: how
    many requests came.

    answer: (status, headers) of each answer from now on; None: it never comes.
    """

    runs: dict[str, Run] = field(default_factory=dict)
    feedback: list[dict[str, Any]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    answer: tuple[int, dict[str, str]] | None = (202, {})
    url: str = ""
    asked: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def variables(self) -> dict[str, str]:
        """The environment that leads here."""
        return {
            "LANGSMITH_ENDPOINT": self.url,
            "LANGSMITH_API_KEY": "k",
            "LANGSMITH_TRACING": "true",
        }

    def run(self, *arguments: str, **variables: str) -> commands.Done:
        """A command in this process that traces to here, to its end and that of its traces."""
        forget_variables()
        done = commands.here(*arguments, **self.variables, **variables)
        tracing.flush()
        return done

    @property
    def roots(self) -> list[Run]:
        return [run for run in self.runs.values() if not run.get("parent_run_id")]

    def of_type(self, type_: str) -> list[Run]:
        return [run for run in self.runs.values() if run["run_type"] == type_]

    def take(self, path: str, type_: str, body: bytes) -> None:
        self.sent.append(body)
        if path.endswith("/feedback"):
            self.feedback.append(json.loads(body))
        elif path.endswith("/runs/multipart"):
            for name, value in _parts(type_, body):
                self._put(name, value)
        else:
            raise AssertionError(f"the SDK sent something to {path}")

    def _put(self, name: str, value: Any) -> None:
        _, id_, *part = name.split(".")
        told = {part[0]: value} if part else value
        self.runs.setdefault(id_, {}).update(told)


def _parts(type_: str, body: bytes) -> Iterator[tuple[str, Any]]:
    head = f"Content-Type: {type_}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content: Any = part.get_payload(decode=True)
        yield str(name), json.loads(content)


def metadata(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run["extra"]["metadata"]
    return found


def forget_variables() -> None:
    """The SDK reads its variables once in a process."""
    get_env_var.cache_clear()  # type: ignore[attr-defined]
    configure(client=None)


@contextmanager
def ingest() -> Iterator[Ingest]:
    """A server that lives as long as the block."""
    here = Ingest()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "zstd":
                body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
            here.asked += 1
            if here.answer is None:
                here.over.wait()
                return
            status, headers = here.answer
            if status < 300:
                here.take(self.path, self.headers["Content-Type"], body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "2"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        here.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield here
        finally:
            forget_variables()
            here.over.set()
            server.shutdown()
            thread.join()
