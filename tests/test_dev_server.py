"""The graph on a real `langgraph dev`, driven as a client drives it."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests import demo_data
from tests.dev_server import ROOT, client_of, said, serving, streamed, thread_of
from tests.postgres import Server

QUESTION = "When do A-17 and B-21 arrive?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with serving(folder) as url:
        yield url


@pytest.fixture
async def client(server: str) -> AsyncIterator[LangGraphClient]:
    async with client_of(server) as connected:
        yield connected


async def test_a_turn_is_streamed_with_results_under_their_ids_and_one_answer(
    client: LangGraphClient,
) -> None:
    thread = await thread_of(client)
    parts = await streamed(client, thread, QUESTION, "messages", "updates", "custom")
    assert not [part for part in parts if part.event == "error"]

    updates = [part.data for part in parts if part.event == "updates"]
    asked = next(u["model"]["calls"] for u in updates if "model" in u)
    results = {k: r for u in updates if "call" in u for k, r in u["call"]["results"].items()}
    subjects = {call["call_id"]: call["arguments"]["order_id"] for call in asked}
    assert {r["call_id"]: r["subject"] for r in results.values()} == subjects
    for result in results.values():
        tracking = {parcel["tracking_number"] for parcel in result["data"]["parcels"]}
        assert tracking == demo_data.tracking(result["subject"])

    events = [part.data for part in parts if part.event == "custom"]
    finished = {e["call_id"]: e["subject"] for e in events if e["event"] == "call_finished"}
    assert finished == subjects

    chunks = [m for p in parts if p.event.startswith("messages/") for m in p.data]
    texts = [m["content"] for m in chunks if isinstance(m, dict) and m.get("type") == "ai"]
    state: Any = await client.threads.get_state(thread)
    answer = state["values"]["messages"][-1]["content"]
    assert answer in texts
    assert "opening" not in repr(texts)
    assert "{parcels}" not in repr(texts)


async def test_a_second_turn_goes_on_with_the_first(client: LangGraphClient) -> None:
    thread = await thread_of(client)
    await client.runs.wait(thread, "support_agent", input=said("When does A-17 arrive?"))
    state: Any = await client.runs.wait(thread, "support_agent", input=said("And B-21?"))
    (card,) = state["answer"]["cards"]
    assert (card["tool"], card["subject"]) == ("get_delivery", "B-21")
    assert state["answer"]["turn"] == 2


async def test_what_a_client_puts_into_the_configuration_is_nobody(client: LangGraphClient) -> None:
    forged: Any = {
        "configurable": {
            "customer_id": "C-1002",
            "langgraph_auth_user": {"identity": "C-1002"},
            "langgraph_auth_user_id": "C-1002",
        }
    }
    state: Any = await client.runs.wait(
        await thread_of(client), "support_agent", input=said("Where is order 00123?"), config=forged
    )
    assert "no order 00123" in state["answer"]["message"]


async def test_the_input_is_messages_and_nothing_else(client: LangGraphClient) -> None:
    (assistant,) = await client.assistants.search()
    schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]


@pytest.mark.long
async def test_a_turn_that_cuts_the_window_still_streams_its_answer(
    client: LangGraphClient,
) -> None:
    thread = await thread_of(client)
    for number in range(24):
        await client.runs.wait(thread, "support_agent", input=said(f"Hello again, {number}"))
    parts = await streamed(client, thread, QUESTION, "messages")
    state: Any = await client.threads.get_state(thread)
    messages = state["values"]["messages"]
    assert len([m for m in messages if m["type"] == "human"]) == 12
    chunks = [m for p in parts if p.event.startswith("messages/") for m in p.data]
    assert messages[-1]["content"] in [m.get("content") for m in chunks if isinstance(m, dict)]


@pytest.mark.long
async def test_a_thread_survives_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        async with client_of(url) as client:
            thread = await thread_of(client)
            await client.runs.wait(thread, "support_agent", input=said("When does A-17 arrive?"))
    with serving(tmp_path) as url:
        async with client_of(url) as client:
            state: Any = await client.runs.wait(thread, "support_agent", input=said("And B-21?"))
        assert [card["subject"] for card in state["answer"]["cards"]] == ["B-21"]
        assert state["answer"]["turn"] == 2


def test_nobody_is_answered_where_nobody_is_signed_in(tmp_path: Path) -> None:
    """As in a deployment: SUPPORT_LOCAL is not set, and there is no auth handler."""
    code = (
        "import asyncio; from agent.graph import graph;"
        "s = asyncio.run(graph.ainvoke({'messages': [('user', 'When does A-17 arrive?')]}));"
        "print(s['answer']['message'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "you are not signed in" in done.stdout, done.stderr


async def test_no_step_of_a_turn_blocks_the_server(client: LangGraphClient, folder: Path) -> None:
    await client.runs.wait(
        await thread_of(client), "support_agent", input=said("Show me all my orders")
    )
    assert b"BlockingError" not in (folder / "server.log").read_bytes()


@pytest.mark.long
async def test_a_turn_on_postgresql_is_answered_and_blocks_nothing(
    tmp_path: Path, postgresql: Server
) -> None:
    with (
        postgresql.copy() as database,
        serving(tmp_path, SUPPORT_DATABASE_URL=database) as url,
    ):
        async with client_of(url) as client:
            thread = await thread_of(client)
            for asked in (QUESTION, "Refund 10 USD of order B, it arrived broken."):
                state: Any = await client.runs.wait(thread, "support_agent", input=said(asked))
            asks = await client.threads.get_state(thread)
        turns = postgresql.execute("SELECT turn FROM turns ORDER BY turn", url=database)
    assert turns == [(1,), (2,)]
    assert state["__interrupt__"], asks
    assert b"BlockingError" not in (tmp_path / "server.log").read_bytes()
