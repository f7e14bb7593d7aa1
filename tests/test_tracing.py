"""Traces as a server receives them: every call, no person."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests import commands

QUESTION = "Hello from Dana Reyes, when do A-17 and B-21 arrive?"
PERSONAL = ["Dana Reyes", "Harborline", "HX2417706391", "Meridian", "when do", "Juniper"]


class _Ingest(BaseHTTPRequestHandler):
    """Takes what the SDK sends, in its plain JSON form."""

    runs: dict[str, dict[str, Any]]

    def do_GET(self) -> None:
        limits = {
            "use_multipart_endpoint": False,
            "size_limit": 100,
            "size_limit_bytes": 10**7,
            "scale_up_nthreads_limit": 1,
            "scale_up_qsize_trigger": 1000,
            "scale_down_nempty_trigger": 4,
        }
        self._answer({"version": "0.9.0", "batch_ingest_config": limits})

    def do_POST(self) -> None:
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for run in [*batch.get("post", []), *batch.get("patch", [])]:
            self.runs.setdefault(run["id"], {}).update(run)
        self._answer({})

    def _answer(self, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(202)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def _ingest() -> Iterator[tuple[dict[str, str], dict[str, dict[str, Any]]]]:
    """The variables that lead to a local server, and the runs that it was sent."""
    runs: dict[str, dict[str, Any]] = {}
    handler = type("Handler", (_Ingest,), {"runs": runs})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        variables = {
            "LANGSMITH_ENDPOINT": url,
            "LANGSMITH_API_KEY": "k",
            "LANGSMITH_TRACING": "true",
        }
        try:
            yield variables, runs
        finally:
            server.shutdown()
            thread.join()


def test_a_turn_is_one_root_and_each_call_a_tool_run_of_its_own_id() -> None:
    with _ingest() as (variables, runs):
        done = commands.run("ask", QUESTION, "--json", **variables)
    assert done.code == 0, done.err
    (root,) = [run for run in runs.values() if not run.get("parent_run_id")]
    assert {run["trace_id"] for run in runs.values()} == {root["id"]}
    assert "policy_version" in root["extra"]["metadata"]

    tools = [run for run in runs.values() if run["run_type"] == "tool"]
    told = {run["extra"]["metadata"]["call_id"]: run for run in tools}
    assert set(told) == {call["call_id"] for call in done.json["calls"]}
    for call in done.json["calls"]:
        metadata = told[call["call_id"]]["extra"]["metadata"]
        assert (metadata["turn"], metadata["round"], metadata["status"]) == (1, 1, "ok")
        assert metadata["response_id"] == call["response_id"]

    models = [run for run in runs.values() if run["run_type"] == "llm"]
    rounds = [run["extra"]["metadata"]["round"] for run in models]
    assert sorted(rounds) == [1, 2]


def test_no_word_of_a_customer_or_a_shop_is_in_a_trace() -> None:
    with _ingest() as (variables, runs):
        commands.run("ask", QUESTION, **variables)
    sent = json.dumps([[run.get("inputs"), run.get("outputs")] for run in runs.values()])
    assert runs
    assert not [word for word in PERSONAL if word in sent]


def test_a_setting_allows_the_words() -> None:
    with _ingest() as (variables, runs):
        commands.run("ask", QUESTION, SUPPORT_TRACE_CONTENT="true", **variables)
    sent = json.dumps([[run.get("inputs"), run.get("outputs")] for run in runs.values()])
    assert not [word for word in ("Dana Reyes", "Harborline") if word not in sent]


def test_what_waits_for_a_confirmation_is_no_error_and_its_arguments_are_in_no_trace() -> None:
    with _ingest() as (variables, runs):
        done = commands.run("ask", "Cancel A-17, Marlowe Quint wants it.", "--json", **variables)
    assert done.code == 3, done.err
    everything = json.dumps(list(runs.values()))
    assert "Marlowe" not in everything
    [call] = [run for run in runs.values() if run["run_type"] == "tool"]
    assert not call.get("error")
    assert call["outputs"] == {"status": "pending"}
