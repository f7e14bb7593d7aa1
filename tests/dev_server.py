"""A real `langgraph dev` on loopback, driven as a client drives it."""

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
from langchain_core.messages import AIMessage
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from offline_model.conversation import Asked, Step

ROOT = Path(__file__).parent.parent


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[str]:
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


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url) as client:
        yield client


def said(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


async def streamed(client: LangGraphClient, thread: str, text: str, *modes: Any) -> list[Any]:
    stream = client.runs.stream(thread, "support_agent", input=said(text), stream_mode=list(modes))
    return [part async for part in stream]


async def thread_of(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


def step(line: AIMessage) -> Step:
    """A line of the scripted model, as a server that stands for a vendor says it."""
    calls = (Asked(c["name"], c["args"], c["id"] or "") for c in line.tool_calls)
    return Step(tuple(calls), line.text)
