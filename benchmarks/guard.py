"""What the guard costs: CPU of a streamed response of 100 kB through ChatOpenAI, with and without.

    python -m benchmarks.guard [--runs 15] [--size 100000]

The response calls one tool several times, in pieces of some characters as vendors send them. Both
ways take turns in one process, so that a machine's moods meet them alike. Printed are medians and
their ratio; below 1 the guard saves more than it costs, since it tells few large events.
"""

import argparse
import asyncio
import gc
import json
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agent.wire.client import whole
from agent.wire.guard import Guard
from offline_model import sse

CALLS, PIECE = 20, 12
Event = dict[str, Any]


class Replays(httpx2.AsyncBaseTransport, httpx2.AsyncByteStream):
    """Answers every request with the same stream, an event at a time."""

    def __init__(self, frames: list[bytes]) -> None:
        self._frames = frames

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for frame in self._frames:
            yield frame


def responses(size: int) -> Iterator[Event]:
    about = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    items = [_item(n, size // CALLS) for n in range(CALLS)]
    yield {"type": "response.created", "response": {**about, "status": "in_progress", "output": []}}
    for index, item in enumerate(items):
        at, text = {"output_index": index, "item_id": item["id"]}, item["arguments"]
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        for piece in _pieces(text):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": text}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    done = {**about, "status": "completed", "output": items}
    yield {"type": "response.completed", "response": done}


def chat(size: int) -> Iterator[Event]:
    for index in range(CALLS):
        item = _item(index, size // CALLS)
        named = {"id": item["call_id"], "type": "function"}
        yield _chunk(
            [{"index": index, **named, "function": {"name": "get_order", "arguments": ""}}]
        )
        for piece in _pieces(item["arguments"]):
            yield _chunk([{"index": index, "function": {"arguments": piece}}])
    yield _chunk(None, "tool_calls")


def _chunk(calls: list[Event] | None, end: str | None = None) -> Event:
    delta = {"tool_calls": calls} if calls else {}
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}


def _item(number: int, size: int) -> Event:
    about = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
    arguments = json.dumps({"order_id": f"A-{number}", "note": "x" * size})
    return {**about, "name": "get_order", "arguments": arguments, "status": "completed"}


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def model(transport: httpx2.AsyncBaseTransport, *, responses: bool) -> ChatOpenAI:
    form: dict[str, Any] = {"output_version": "responses/v1"} if responses else {}
    return ChatOpenAI(
        model_name="m",
        openai_api_key=SecretStr("none"),
        openai_api_base="http://model.invalid/v1",
        streaming=True,
        use_responses_api=responses,
        stream_chunk_timeout=None,
        http_socket_options=(),
        http_async_client=httpx2.AsyncClient(transport=transport),
        **form,
    )


async def spent(asked: ChatOpenAI) -> float:
    """Milliseconds of CPU of one response."""
    gc.collect()
    begun = time.process_time()
    message = await whole(asked.astream([HumanMessage("Where are they?")]))
    assert len(message.tool_calls) == CALLS
    return (time.process_time() - begun) * 1000


async def compare(name: str, frames: list[bytes], runs: int) -> None:
    ways = [
        model(transport, responses=name == "responses")
        for transport in (Replays(frames), Guard(Replays(frames)))
    ]
    for way in ways:
        await spent(way)
    times = [[await spent(way) for way in ways] for _ in range(runs)]
    bare, guarded = (statistics.median(column) for column in zip(*times, strict=True))
    print(
        f"{name:10}  without {bare:7.1f} ms   with {guarded:7.1f} ms   ratio {guarded / bare:.2f}"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--size", type=int, default=100_000, help="characters of arguments")
    options = parser.parse_args()
    await compare("responses", [*map(sse.frame, responses(options.size))], options.runs)
    await compare("chat", [*map(sse.frame, chat(options.size)), sse.DONE], options.runs)


if __name__ == "__main__":
    asyncio.run(main())
