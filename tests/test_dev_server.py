"""The graph on a real `langgraph dev`, driven as a client drives it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests import demo_data

ROOT = Path(__file__).parent.parent
QUESTION = "When do A-17 and B-21 arrive?"


@contextmanager
def _serving(folder: Path, **variables: str) -> Iterator[str]:
    """A server with its own folder for state; its URL. It ends with a clean stop."""
    for name in ("langgraph.json", "agent"):  # the server looks for both where it was started
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (folder / "server.log").open("ab")
    process = subprocess.Popen(
        [
            *(
                sys.executable,
                "-m",
                "langgraph_cli",
                "dev",
                "--config",
                str(ROOT / "langgraph.json"),
            ),
            *("--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)),
            *("--n-jobs-per-worker", "10"),
        ],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGGRAPH_NO_VERSION_CHECK": "1",
            "SUPPORT_DATABASE_URL": f"sqlite:///{folder / 'shop.db'}",
            **variables,
        },
        stdout=log,
        stderr=log,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        log.close()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(f"{url}/ok").status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.2)
    raise AssertionError("The server did not start.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with _serving(folder) as url:
        yield url


@asynccontextmanager
async def _client_of(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url) as client:
        yield client


@pytest.fixture
async def client(server: str) -> AsyncIterator[LangGraphClient]:
    async with _client_of(server) as connected:
        yield connected


def _said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


async def _streamed(client: LangGraphClient, thread: str, text: str, *modes: Any) -> list[Any]:
    stream = client.runs.stream(thread, "support_agent", input=_said(text), stream_mode=list(modes))
    return [part async for part in stream]


async def _thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def test_a_turn_is_streamed_with_results_under_their_ids_and_one_answer(
    client: LangGraphClient,
) -> None:
    thread = await _thread(client)
    parts = await _streamed(client, thread, QUESTION, "messages", "updates", "custom")
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

    streamed = [m for p in parts if p.event.startswith("messages/") for m in p.data]
    texts = [m["content"] for m in streamed if isinstance(m, dict) and m.get("type") == "ai"]
    state: Any = await client.threads.get_state(thread)
    answer = state["values"]["messages"][-1]["content"]
    assert answer in texts
    assert "opening" not in repr(texts)
    assert "{parcels}" not in repr(texts)


async def test_a_second_turn_goes_on_with_the_first(client: LangGraphClient) -> None:
    thread = await _thread(client)
    await client.runs.wait(thread, "support_agent", input=_said("When does A-17 arrive?"))
    state: Any = await client.runs.wait(thread, "support_agent", input=_said("And B-21?"))
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
        await _thread(client), "support_agent", input=_said("Where is order 00123?"), config=forged
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
    thread = await _thread(client)
    for number in range(20):
        await client.runs.wait(thread, "support_agent", input=_said(f"Hello again, {number}"))
    parts = await _streamed(client, thread, QUESTION, "messages")
    state: Any = await client.threads.get_state(thread)
    messages = state["values"]["messages"]
    assert len([m for m in messages if m["type"] == "human"]) == 20
    streamed = [m for p in parts if p.event.startswith("messages/") for m in p.data]
    assert messages[-1]["content"] in [m.get("content") for m in streamed if isinstance(m, dict)]


@pytest.mark.long
async def test_a_thread_survives_a_restart(tmp_path: Path) -> None:
    with _serving(tmp_path) as url:
        async with _client_of(url) as client:
            thread = await _thread(client)
            await client.runs.wait(thread, "support_agent", input=_said("When does A-17 arrive?"))
    with _serving(tmp_path) as url:
        async with _client_of(url) as client:
            state: Any = await client.runs.wait(thread, "support_agent", input=_said("And B-21?"))
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
        await _thread(client), "support_agent", input=_said("Show me all my orders")
    )
    assert b"BlockingError" not in (folder / "server.log").read_bytes()
