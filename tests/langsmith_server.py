"""A loopback server that answers as LangSmith does: data sets, examples, experiments, feedback.

It refuses what the real one would: a wrong key, an example of no data set, a run of no experiment.
"""

import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "invented-key"
TENANT = str(uuid.UUID(int=7))
Row = dict[str, Any]


@dataclass
class LangSmith:
    """What the server was sent; everything by its id."""

    url: str = ""
    datasets: dict[str, Row] = field(default_factory=dict)
    examples: dict[str, Row] = field(default_factory=dict)
    experiments: dict[str, Row] = field(default_factory=dict)
    runs: dict[str, Row] = field(default_factory=dict)
    feedback: list[Row] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def variables(self) -> dict[str, str]:
        return {"LANGSMITH_ENDPOINT": self.url, "LANGSMITH_API_KEY": KEY}


class Refusal(Exception):
    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail


class _Handler(BaseHTTPRequestHandler):
    langsmith: LangSmith

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        try:
            if url.path != "/info" and self.headers["x-api-key"] != KEY:
                raise Refusal(401, "Invalid token")
            with self.langsmith.lock:
                answer = self._route(url.path, parse_qs(url.query), body)
            self._answer(200, answer)
        except Refusal as refusal:
            self._answer(refusal.status, {"detail": refusal.detail})

    do_GET = do_POST = do_PATCH = do_DELETE = _serve

    def _route(self, path: str, query: dict[str, list[str]], body: bytes) -> Any:
        for method, pattern, handle in ROUTES:
            if method == self.command and (found := re.fullmatch(pattern, path)):
                if method != "GET":
                    self.langsmith.writes.append(f"{method} {path}")
                return handle(self.langsmith, found.groups(), query, self._content(body))
        raise Refusal(404, f"Not Found: {self.command} {path}")

    def _content(self, body: bytes) -> Any:
        kind = self.headers["Content-Type"] or ""
        if not kind.startswith("multipart/"):
            return json.loads(body) if body else None
        message = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
        payload: Any = message.get_payload()
        parts = {}
        for part in payload:
            name = part.get_param("name", header="content-disposition")
            parts[name] = json.loads(part.get_payload(decode=True))
        return parts

    def _answer(self, status: int, content: Any) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None: ...


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _info(at: LangSmith, *_: Any) -> Any:
    limits = {
        "use_multipart_endpoint": True,
        "size_limit": 100,
        "size_limit_bytes": 10**7,
        "scale_up_nthreads_limit": 4,
        "scale_up_qsize_trigger": 1000,
        "scale_down_nempty_trigger": 4,
    }
    flags = {"dataset_examples_multipart_enabled": True}
    return {"version": "0.12.0", "batch_ingest_config": limits, "instance_flags": flags}


def _find_datasets(at: LangSmith, _: Any, query: dict[str, list[str]], __: Any) -> Any:
    return [each for each in at.datasets.values() if [each["name"]] == query.get("name")]


def _make_dataset(at: LangSmith, _: Any, __: Any, sent: Row) -> Any:
    if any(each["name"] == sent["name"] for each in at.datasets.values()):
        raise Refusal(409, "Dataset with this name already exists.")
    row = {"id": str(uuid.uuid4()), "tenant_id": TENANT, "created_at": _now(), **sent}
    return at.datasets.setdefault(row["id"], row)


def _list_examples(at: LangSmith, _: Any, query: dict[str, list[str]], __: Any) -> Any:
    [dataset], [start] = query["dataset"], query.get("offset", ["0"])
    own = [each for each in at.examples.values() if each["dataset_id"] == dataset]
    return own[int(start) : int(start) + int(query.get("limit", ["100"])[0])]


def _put_examples(at: LangSmith, ids: tuple[str, ...], _: Any, sent: Row) -> Any:
    [dataset] = ids
    if dataset not in at.datasets:
        raise Refusal(404, "Dataset not found")
    names = [name for name in sent if "." not in name]
    for name in names:
        known = at.examples.get(name, {"id": name, "dataset_id": dataset, "created_at": _now()})
        parts = {part: sent[f"{name}.{part}"] for part in ("inputs", "outputs")}
        at.examples[name] = {**known, **parts, **sent[name], "modified_at": _now()}
    return {"count": len(names), "example_ids": names}


def _delete_examples(at: LangSmith, _: Any, query: dict[str, list[str]], __: Any) -> Any:
    for id_ in query["example_ids"]:
        del at.examples[id_]
    return {}


def _list_experiments(at: LangSmith, *_: Any) -> Any:
    return list(at.experiments.values())


def _make_experiment(at: LangSmith, _: Any, __: Any, sent: Row) -> Any:
    if sent["reference_dataset_id"] not in at.datasets:
        raise Refusal(404, "Dataset not found")
    row = {"id": str(uuid.uuid4()), "tenant_id": TENANT, "start_time": _now(), **sent}
    return at.experiments.setdefault(row["id"], row)


def _change_experiment(at: LangSmith, ids: tuple[str, ...], _: Any, sent: Row) -> Any:
    at.experiments[ids[0]].update({name: value for name, value in sent.items() if value})
    return at.experiments[ids[0]]


def _ingest(at: LangSmith, _: Any, __: Any, sent: Row) -> Any:
    """Parts are named post.RUN, post.RUN.inputs, patch.RUN …, feedback.RUN."""
    for name, content in sent.items():
        event, id_, *rest = name.split(".")
        if event == "feedback":
            at.feedback.append(content)
            continue
        at.runs.setdefault(id_, {}).update({rest[0]: content} if rest else content)
    return {}


def _feedback(at: LangSmith, _: Any, __: Any, sent: Row) -> Any:
    at.feedback.append(sent)
    return sent


ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/info", _info),
    ("GET", "/datasets", _find_datasets),
    ("POST", "/datasets", _make_dataset),
    ("GET", "/examples", _list_examples),
    ("DELETE", "/examples", _delete_examples),
    ("POST", "/v1/platform/datasets/([^/]+)/examples", _put_examples),
    ("PATCH", "/v1/platform/datasets/([^/]+)/examples", _put_examples),
    ("GET", "/sessions", _list_experiments),
    ("POST", "/sessions", _make_experiment),
    ("PATCH", "/sessions/([^/]+)", _change_experiment),
    ("POST", "/runs/multipart", _ingest),
    ("POST", "/feedback", _feedback),
]


@contextmanager
def langsmith_server() -> Iterator[LangSmith]:
    state = LangSmith()
    handler = type("Handler", (_Handler,), {"langsmith": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
