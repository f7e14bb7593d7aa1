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
from typing import Any

import httpx2
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agent.wire.client import whole
from agent.wire.guard import Guard
from offline_model.sse import EventStream
from tests.streams import BUILD, Call, frames

CALLS, PIECE = 20, 12


def call(number: int, size: int) -> Call:
    text = json.dumps({"order_id": f"A-{number}", "note": "x" * size})
    pieces = tuple(text[at : at + PIECE] for at in range(0, len(text), PIECE))
    return Call(f"call_{number}", "get_order", pieces)


def replaying(body: list[bytes]) -> httpx2.AsyncBaseTransport:
    """Answers every request with the same stream, an event at a time."""
    headers = {"content-type": "text/event-stream"}
    return httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers=headers, stream=EventStream(body))
    )


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


async def compare(name: str, size: int, runs: int) -> None:
    stream = BUILD[name]([call(number, size // CALLS) for number in range(CALLS)])
    bare = replaying(frames(stream.events, done=stream.done))
    ways = [model(each, responses=name == "responses") for each in (bare, Guard(bare))]
    for way in ways:
        await spent(way)
    times = [[await spent(way) for way in ways] for _ in range(runs)]
    without, guarded = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = guarded / without
    print(f"{name:10}  without {without:7.1f} ms   with {guarded:7.1f} ms   ratio {ratio:.2f}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--size", type=int, default=100_000, help="characters of arguments")
    options = parser.parse_args()
    for name in ("responses", "chat"):
        await compare(name, options.size, options.runs)


if __name__ == "__main__":
    asyncio.run(main())
