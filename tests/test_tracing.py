"""Traces as a server receives them: every call under the turn that made it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langsmith import traceable, tracing_context
from pydantic import SecretStr

from agent import tracing
from agent.settings import Settings
from agent.traces_client import TraceClient
from tests import commands, dev_server
from tests.ingest import Ingest, forget_variables, ingest, metadata
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, decide, failing, graph_of
from tools.registry import TOOLS

QUESTION = "Hello from Dana Reyes, when do A-17 and B-21 arrive?"
A17 = ("call_a", "get_order", {"order_id": "A-17"})
B21 = ("call_b", "get_order", {"order_id": "B-21"})
DONE = answering(("call_a", "{status}"))


@contextmanager
def traced(server: Ingest, folder: Path, **settings: Any) -> Iterator[TraceClient]:
    """A client for this process that sends to the server; nothing of it is left behind."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables.items():
            patch.setenv(name, value)
        forget_variables()
        client = TraceClient(Settings(trace_folder=folder, trace_key=SecretStr("key"), **settings))
        with tracing_context(enabled=True, client=client):
            yield client


@pytest.fixture
def server() -> Iterator[Ingest]:
    with ingest() as here:
        yield here


@pytest.fixture
async def client(server: Ingest, tmp_path: Path) -> AsyncIterator[TraceClient]:
    with traced(server, tmp_path / "traces") as here:
        yield here


def test_a_turn_is_one_root_and_each_call_a_tool_run_of_its_own_id(server: Ingest) -> None:
    done = server.run("ask", QUESTION, "--json")
    assert done.code == 0, done.err
    [root] = server.roots
    assert root["id"] == done.json["trace_id"]
    assert {run["trace_id"] for run in server.runs.values()} == {root["id"]}
    assert metadata(root)["policy_version"]
    assert {name: metadata(root)[name] for name in done.json["usage"]} == done.json["usage"]

    told = {metadata(run)["call_id"]: run for run in server.of_type("tool")}
    assert set(told) == {call["call_id"] for call in done.json["calls"]}
    for call in done.json["calls"]:
        about = metadata(told[call["call_id"]])
        expected = {"turn": 1, "status": "ok"} | {n: call[n] for n in ("tool", "round", "item_id")}
        assert {name: about[name] for name in expected} == expected
        assert about["response_id"] == call["response_id"]

    rounds = {metadata(run)["round"]: metadata(run) for run in server.of_type("llm")}
    assert sorted(rounds) == [1, 2]
    assert rounds[1]["response_id"] == done.json["calls"][0]["response_id"]
    assert all(about["policy_version"] and about["ls_model_name"] for about in rounds.values())
    assert all(run.get("end_time") for run in server.runs.values())


async def test_a_call_costs_one_run_and_a_round_two(server: Ingest, client: TraceClient) -> None:
    await ask(graph_of(Scripted(calling(A17, B21), DONE)), "A-17 and B-21?")
    client.flush()
    assert sorted(run["name"] for run in server.runs.values()) == [
        *("get_order", "get_order", "llm", "llm", "model", "model", "support-agent"),
    ]


async def test_calls_that_share_a_step_have_runs_of_their_own(
    server: Ingest, client: TraceClient
) -> None:
    many = [(f"call_{n}", "get_order", {"order_id": "A-17"}) for n in range(20)]
    await ask(graph_of(Scripted(calling(*many), answering())), "A-17?")
    client.flush()
    told = [metadata(run)["call_id"] for run in server.of_type("tool")]
    assert sorted(told) == sorted(id_ for id_, *_ in many)
    assert len(server.roots) == 1


async def test_a_failing_call_says_so_with_its_kind(server: Ingest, client: TraceClient) -> None:
    tools = failing(TOOLS, ["call_a"])
    await ask(graph_of(Scripted(calling(A17, B21), answering()), tools=tools), "A-17 and B-21?")
    client.flush()
    told = {metadata(run)["call_id"]: run["outputs"] for run in server.of_type("tool")}
    assert told == {
        "call_a": {"status": "error", "error_kind": "service_error"},
        "call_b": {"status": "ok"},
    }


async def test_each_try_at_a_response_is_a_run_of_its_own(
    server: Ingest, client: TraceClient
) -> None:
    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    await ask(graph_of(Scripted(cut, calling(A17), DONE)), "A-17?")
    client.flush()
    tried = [(metadata(run)["round"], metadata(run)["attempt"]) for run in server.of_type("llm")]
    assert sorted(tried) == [(1, 1), (1, 2), (2, 1)]


async def test_a_pause_is_no_error_and_going_on_is_a_root_of_the_same_turn(
    server: Ingest, client: TraceClient, tmp_path: Path
) -> None:
    cancel = ("call_c", "cancel_order", {"order_id": "A-17", "reason": "Marlowe Quint"})
    database = f"sqlite:///{tmp_path / 'shop.db'}"
    graph = graph_of(Scripted(calling(cancel), answering()), database=database)
    await ask(graph, "Cancel A-17")
    client.flush()
    [paused] = server.of_type("tool")
    assert not paused.get("error")
    assert paused["outputs"] == {"status": "awaiting_confirmation"}
    [root] = server.roots
    assert (metadata(root)["turn"], metadata(root)["status"]) == (1, "awaiting_confirmation")

    await decide(graph, call_c="confirm")
    client.flush()
    assert len(server.roots) == 2
    assert len({metadata(root)["thread_id"] for root in server.roots}) == 1
    again = [run for run in server.of_type("tool") if run["id"] != paused["id"]]
    assert [metadata(run)["call_id"] for run in again] == ["call_c"]
    assert again[0]["outputs"] == {"status": "ok"}


async def test_what_a_tool_fans_out_to_stands_under_its_call(
    server: Ingest, client: TraceClient
) -> None:
    @traceable
    def backend(number: int) -> int:
        return number

    async def fans_out(order_id: str) -> str:
        """Looks into three backends."""
        await asyncio.gather(*[asyncio.to_thread(backend, n) for n in range(3)])
        return order_id

    tool = StructuredTool.from_function(coroutine=fans_out)
    call = ("call_a", "fans_out", {"order_id": "A-17"})
    await ask(graph_of(Scripted(calling(call), answering()), tools=[tool]), "A-17?")
    client.flush()
    [root] = server.roots
    [made] = [run for run in server.of_type("tool") if "call_id" in metadata(run)]
    inner = [run for run in server.runs.values() if made["id"] in run["dotted_order"]]
    assert len(inner) >= 4
    assert {run["trace_id"] for run in server.runs.values()} == {root["id"]}


def test_a_setting_allows_the_words(server: Ingest) -> None:
    server.run("ask", QUESTION, SUPPORT_TRACE_CONTENT="true")
    sent = b"".join(server.sent)
    assert not [word for word in (b"Dana Reyes", b"Harborline", b"A-17") if word not in sent]


def test_a_finer_setting_allows_ids_alone(server: Ingest) -> None:
    done = server.run("ask", QUESTION, "--json", SUPPORT_TRACE_IDS="true")
    assert {metadata(run)["subject"] for run in server.of_type("tool")} == {"A-17", "B-21"}
    [root] = server.roots
    assert metadata(root)["thread_id"] == done.json["thread_id"]
    assert metadata(root)["customer"] == "C-1001"
    assert b"Dana" not in b"".join(server.sent)


async def test_a_share_of_the_turns_is_traced_and_each_of_them_whole(
    server: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING_SAMPLING_RATE", "0.5")
    with traced(server, tmp_path) as client:
        graph = graph_of(Scripted(*[answering()] * 40))
        for number in range(40):
            await ask(graph, "Hello", f"thread-{number}")
        client.flush()
    assert 5 < len(server.roots) < 35
    assert len(server.runs) == 3 * len(server.roots)


def test_nothing_is_traced_or_named_without_the_switch(server: Ingest, tmp_path: Path) -> None:
    variables = {**server.variables, "LANGSMITH_TRACING": "false"}
    done = commands.here("ask", QUESTION, "--json", **variables)
    assert done.json["trace_id"] is None
    assert not server.sent
    assert tracing.run_id() is None


def test_a_missing_key_is_said_once_in_a_sentence_and_the_turn_answered() -> None:
    nowhere = "http://127.0.0.1:9"
    done = commands.run("ask", QUESTION, LANGSMITH_TRACING="true", HTTPS_PROXY=nowhere)
    assert done.code == 0
    assert done.err.count("LANGSMITH_TRACING=true needs LANGSMITH_API_KEY") == 1
    assert "Warning" not in done.err
    assert "A-17" in done.out


async def test_on_a_server_the_root_is_the_run_that_it_names(
    server: Ingest, tmp_path: Path
) -> None:
    with dev_server.serving(tmp_path, **server.variables) as url:
        async with dev_server.client_of(url) as client:
            thread = await dev_server.thread_of(client)
            parts = await dev_server.streamed(client, thread, QUESTION, "values")
    assert not [part for part in parts if part.event == "error"]
    [named] = [part.data["run_id"] for part in parts if part.event == "metadata"]
    assert {root["id"] for root in server.roots} == {named}
    assert len(server.of_type("tool")) == 2
    assert thread.encode() not in b"".join(server.sent)
    assert b"Dana" not in b"".join(server.sent)
