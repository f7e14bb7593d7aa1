"""The guard under the real clients and in the graph."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from agent.admission import BrokenResponse, admit
from agent.wire.client import whole
from agent.wire.connect import connect
from agent.wire.guard import Guard
from tests.responses_server import cut, good, in_the_last_item, serving, status
from tests.streams import Call, Event, Stream, chat, chunk, frames, responses
from tests.test_protocols import settings_of
from tests.turns import graph_of, watch
from tools.database import Database

TWO = "Where are order A-18 and order B-21?"
A17 = Call("call_1", "get_order", ('{"order_', 'id":"A-17"}'))
B21 = Call("call_2", "get_order", ('{"order_id":"B-', '21"}'))
BUILD = {"responses": responses, "chat": chat}


class Replays(httpx2.AsyncBaseTransport, httpx2.AsyncByteStream):
    """Answers each request with the same pieces of a body."""

    def __init__(self, pieces: list[bytes], kind: str = "text/event-stream") -> None:
        self.pieces, self.kind, self.asked = pieces, kind, 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        return httpx2.Response(200, headers={"content-type": self.kind}, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def model(transport: httpx2.AsyncBaseTransport, name: str, **options: Any) -> ChatOpenAI:
    form = {"output_version": "responses/v1"} if name == "responses" else {}
    return ChatOpenAI(
        model_name="m",
        openai_api_key=SecretStr("none"),
        openai_api_base="http://model.invalid/v1",
        use_responses_api=name == "responses",
        stream_usage=True,
        http_socket_options=(),
        http_async_client=httpx2.AsyncClient(transport=Guard(transport)),
        **{**form, "streaming": True, **options},
    )


async def heard(name: str, events: list[Event]) -> AIMessage:
    asked = model(Replays(frames(events, done=name == "chat")), name)
    return await whole(asked.astream([HumanMessage("Where are they?")]))


def calls_of(message: AIMessage) -> list[tuple[str, Any]]:
    return [(call["call_id"], call["arguments"]) for call in admit(message, round=1)]


@pytest.mark.parametrize("name", BUILD)
async def test_calls_that_interleave_reach_the_graph_as_two_calls(name: str) -> None:
    stream = BUILD[name]([A17, B21], "a word beside")
    message = await heard(name, stream.mixed([0, 1, 0, 1, 1, 0]))
    assert calls_of(message) == [("call_1", {"order_id": "A-17"}), ("call_2", {"order_id": "B-21"})]
    assert message.text == "a word beside"


@pytest.mark.parametrize("name", BUILD)
async def test_usage_that_is_told_in_every_event_is_counted_once(name: str) -> None:
    stream = BUILD[name]([A17])
    used = stream.last[-1].get("usage")
    told = [{**event, "usage": used} if used else event for event in stream.events]
    message = await heard(name, told)
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 10
    assert message.usage_metadata["output_tokens"] == 2


@pytest.mark.parametrize("name", BUILD)
async def test_a_call_whose_arguments_are_no_json_keeps_its_text(name: str) -> None:
    odd = Call("call_1", "get_order", ('{"order_id":"A"}{"order', '_id":"B"}'))
    message = await heard(name, BUILD[name]([odd, B21]).events)
    assert calls_of(message) == [("call_1", odd.text), ("call_2", {"order_id": "B-21"})]


@pytest.mark.parametrize("name", BUILD)
async def test_a_cut_stream_is_an_interruption_after_one_request(name: str) -> None:
    server = Replays(frames(BUILD[name]([A17]).events[:3]))
    with pytest.raises(BrokenResponse, match="ended before the response was completed"):
        await whole(model(server, name).astream([HumanMessage("hi")]))
    assert server.asked == 1


@pytest.mark.parametrize("name", BUILD)
async def test_a_cut_body_that_was_not_streamed_is_an_interruption_too(name: str) -> None:
    whole_body: dict[str, Any] = {
        "responses": {**responses([A17]).last[0]["response"], "status": "incomplete"},
        "chat": _cut_completion(chat([A17])),
    }
    server = Replays([json.dumps(whole_body[name]).encode()], "application/json")
    asked = model(server, name, streaming=False, max_retries=1)
    with pytest.raises(BrokenResponse):
        await whole(asked.astream([HumanMessage("hi")]))


def _cut_completion(stream: Stream) -> Event:
    call = {"id": "call_1", "type": "function"}
    function = {"name": "get_order", "arguments": '{"order_id":"A'}
    message = {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]}
    about = {"index": 0, "message": message, "finish_reason": "length"}
    return {**chunk({}), "object": "chat.completion", "choices": [about]}


# In the graph.


async def test_names_are_told_before_calls_start(database: Database) -> None:
    turn = await watch(graph_of(database=database), TWO, "thread-1")
    told = [event for event in turn.events if event["event"] == "call_named"]
    assert [event["call_id"] for event in told] == [c["call_id"] for c in turn.state["calls"]]
    assert {(e["tool"], e["subject"], e["status"]) for e in told} == {("get_delivery", "", "named")}
    kinds = [event["event"] for event in turn.events]
    assert kinds.index("call_started") > max(n for n, k in enumerate(kinds) if k == "call_named")


async def test_a_name_that_was_told_of_a_broken_response_runs_nothing(database: Database) -> None:
    with serving(cut(in_the_last_item, cleanly=True), good) as server:
        settings = settings_of("whole", server)
        turn = await watch(graph_of(settings=settings, database=database), TWO, "thread-1")
    kinds = [event["event"] for event in turn.events]
    assert kinds[:5] == ["call_named", "call_named", "retry", "call_named", "call_named"]
    assert kinds.count("call_started") == 2


async def test_an_error_of_the_server_goes_through_so_that_the_client_asks_again() -> None:
    with serving(status(503), good) as server:
        settings = settings_of("whole", server)
        message = await whole(connect(settings).astream([HumanMessage("Hello!")]))
        assert len(server.requests) == 2
    assert message.text


async def test_a_server_that_never_begins_to_answer_is_given_up() -> None:
    class Silent(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await asyncio.Event().wait()
            raise AssertionError

    async with httpx2.AsyncClient(transport=Guard(Silent(), stall=0.02)) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post("http://model.invalid/v1/responses", content=b"{}")
