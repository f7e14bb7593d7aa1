"""The offline model speaks Chat Completions: to the real client, and in the raw."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_openai import ChatOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import TypeAdapter

from agent.answer.draft import RESPONSE_FORMAT
from offline_model import OfflineTransport
from tests.test_offline_protocol import (
    LOOSE,
    OPEN_SCHEMA,
    QUESTION,
    URL,
    Answer,
    get_delivery,
    get_order,
    invoked,
    ok,
    results,
    unknown_fields,
)

Message = dict[str, Any]


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    transport = OfflineTransport()
    headers = {"Authorization": "Bearer offline"}
    async with httpx2.AsyncClient(transport=transport, base_url=URL, headers=headers) as client:
        yield client


@pytest.fixture
def model(client: httpx2.AsyncClient) -> Any:
    options: dict[str, Any] = {"model": "offline", "api_key": "offline", "base_url": URL}
    told: dict[str, Any] = {"stream_usage": True, "http_async_client": client}
    chat = ChatOpenAI(use_responses_api=False, **options, **told)
    bound = chat.bind_tools([get_order, get_delivery], strict=True, parallel_tool_calls=True)
    return bound.bind(response_format=RESPONSE_FORMAT)


async def streamed(model: Any, messages: list[BaseMessage]) -> AIMessage:
    return add_ai_message_chunks(*[chunk async for chunk in model.astream(messages)])


# Through the client that the agent uses.


@pytest.mark.parametrize("ask", [invoked, streamed])
async def test_the_client_gets_calls_and_then_an_answer_that_fits_the_schema(
    model: Any, ask: Any
) -> None:
    messages = [SystemMessage("You help."), HumanMessage(QUESTION)]
    first = await ask(model, messages)
    assert [(call["name"], call["args"]) for call in first.tool_calls] == [
        ("get_delivery", {"order_id": "A-17"}),
        ("get_order", {"order_id": "B-21"}),
    ]
    assert first.response_metadata["finish_reason"] == "tool_calls"
    last = await ask(model, [*messages, first, *results(first)])
    answer = Answer.model_validate_json(last.text)
    assert not last.tool_calls
    assert last.response_metadata["finish_reason"] == "stop"
    assert [card.call_id for card in answer.cards] == [call["id"] for call in first.tool_calls]
    assert "{total}" in answer.cards[1].text


@pytest.mark.parametrize("ask", [invoked, streamed])
async def test_usage_is_counted_once(model: Any, ask: Any) -> None:
    usage = (await ask(model, [HumanMessage(QUESTION)])).usage_metadata
    assert usage["input_tokens"] > 100
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


# In the raw: shapes and chunks.


def tool(name: str, **more: Any) -> Message:
    parameters = {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
        "additionalProperties": False,
    }
    told = {"name": name, "description": "", "strict": True, "parameters": parameters, **more}
    return {"type": "function", "function": told}


def request(*messages: Any, **more: Any) -> Message:
    tools = [tool("get_order"), tool("get_delivery")]
    system = {"role": "system", "content": "You help."}
    return {"model": "m", "tools": tools, "messages": [system, *messages], **more}


def user(text: str = QUESTION) -> Message:
    return {"role": "user", "content": text}


def calls(*ids: str, **more: Any) -> Message:
    function = {"name": "get_order", "arguments": '{"order_id":"A-17"}', **more}
    asked = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": asked}


def result(call_id: str = "call_1") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": json.dumps(ok("A-17"))}


async def completed(client: httpx2.AsyncClient, sent: Message) -> Message:
    response = await client.post("/chat/completions", json=sent)
    assert response.status_code == 200, response.text
    choice: Message = response.json()["choices"][0]
    return choice


async def frames(client: httpx2.AsyncClient, sent: Message) -> list[str]:
    streamed = {**sent, "stream": True}
    async with client.stream("POST", "/chat/completions", json=streamed) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        body = (await response.aread()).decode()
    return body.removesuffix("\n\n").split("\n\n")


async def chunks(client: httpx2.AsyncClient, sent: Message) -> list[Message]:
    *told, end = await frames(client, sent)
    assert end == "data: [DONE]"
    return [json.loads(frame.removeprefix("data: ")) for frame in told]


USAGE = {"stream_options": {"include_usage": True}}


@pytest.mark.parametrize("messages", [(user(),), (user(), calls("call_1"), result(), user("hi"))])
async def test_what_is_sent_has_the_shapes_of_the_api(
    client: httpx2.AsyncClient, messages: tuple[Message, ...]
) -> None:
    response = await client.post("/chat/completions", json=request(*messages))
    parsed = TypeAdapter(ChatCompletion).validate_python(response.json(), strict=True)
    assert unknown_fields(parsed) == []
    for chunk in await chunks(client, request(*messages, **USAGE)):
        known = TypeAdapter(ChatCompletionChunk).validate_python(chunk, strict=True)
        assert unknown_fields(known) == []


async def test_a_call_comes_named_first_and_then_in_fragments(client: httpx2.AsyncClient) -> None:
    found = await chunks(client, request(user()))
    deltas = [chunk["choices"][0]["delta"] for chunk in found]
    assert deltas[0] == {"role": "assistant", "content": None, "refusal": None}
    assert deltas[-1] == {}
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"
    pieces = [call for delta in deltas for call in delta.get("tool_calls", ())]
    named = [piece for piece in pieces if "id" in piece]
    assert [(p["index"], p["function"]["arguments"]) for p in named] == [(0, ""), (1, "")]
    assert [piece["index"] for piece in pieces] == sorted(piece["index"] for piece in pieces)
    for index, order_id in enumerate(("A-17", "B-21")):
        own = [p["function"]["arguments"] for p in pieces if p["index"] == index]
        assert json.loads("".join(own)) == {"order_id": order_id}
        assert max(map(len, own)) == 7


async def test_a_message_comes_in_fragments_and_stops(client: httpx2.AsyncClient) -> None:
    found = await chunks(client, request(user("hello")))
    whole = await completed(client, request(user("hello")))
    said = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in found)
    assert said == whole["message"]["content"] != ""
    assert found[-1]["choices"][0]["finish_reason"] == whole["finish_reason"] == "stop"


async def test_the_usage_is_in_the_last_chunk_where_it_was_asked_for(
    client: httpx2.AsyncClient,
) -> None:
    *others, last = await chunks(client, request(user(), **USAGE))
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > last["usage"]["prompt_tokens"] > 100
    assert {chunk["usage"] for chunk in others} == {None}
    assert not [c for c in await chunks(client, request(user())) if "usage" in c]


async def test_call_ids_may_start_again_in_a_later_round(client: httpx2.AsyncClient) -> None:
    round_ = (calls("call_1", "call_2"), result("call_2"), result("call_1"))
    assert await completed(client, request(user(), *round_, *round_, user(), *round_))


async def test_without_parallel_calls_one_is_made(client: httpx2.AsyncClient) -> None:
    choice = await completed(client, request(user(), parallel_tool_calls=False))
    assert len(choice["message"]["tool_calls"]) == 1


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("none", []),
        ("required", ["get_order"]),
        ({"type": "function", "function": {"name": "get_delivery"}}, ["get_delivery"]),
    ],
)
async def test_the_tool_choice_is_followed(
    client: httpx2.AsyncClient, choice: Any, names: list[str]
) -> None:
    message = (await completed(client, request(user("hello"), tool_choice=choice)))["message"]
    assert [call["function"]["name"] for call in message.get("tool_calls", ())] == names


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_a_schema_in_the_instructions_gives_json(
    client: httpx2.AsyncClient, role: str
) -> None:
    words = {"role": role, "content": "Answer with one JSON object: …"}
    sent = request(words, user("status of A-17"), calls("call_1"), result())
    text = (await completed(client, sent))["message"]["content"]
    assert json.loads(text)["cards"][0]["call_id"] == "call_1"


async def test_both_protocols_answer_alike(client: httpx2.AsyncClient) -> None:
    asked = {"model": "m", "input": QUESTION, "tools": []}
    other = (await client.post("/responses", json=asked)).json()["output"][0]["content"][0]["text"]
    sent = {"model": "m", "messages": [user()]}
    assert (await completed(client, sent))["message"]["content"] == other


# Refusals, in the API's words.

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
)
SEND_AGAIN = (
    "The messages hold function calls, but the request came without {0}. Tools and instructions "
    "are not carried over: {0} must be sent again with every request."
)
LONG = "c" * 65
REFUSED: dict[str, tuple[Message, str]] = {
    "a call without its result at the end": (
        request(user(), calls("call_1")),
        UNANSWERED.format("call_1"),
    ),
    "calls without their results before the next message": (
        request(user(), calls("call_1", "call_2", "call_3"), result("call_2"), user("and?")),
        UNANSWERED.format("call_1, call_3"),
    ),
    "a result without any call": (
        request(user(), result()),
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
    ),
    "a result of a call that was not made": (
        request(user(), calls("call_1"), result("call_9")),
        "Invalid parameter: 'tool_call_id' of 'call_9' not found in 'tool_calls' of previous "
        "message.",
    ),
    "two results of one call": (
        request(user(), calls("call_1", "call_2"), result(), result(), result("call_2")),
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'call_1' in message[4].",
    ),
    "one call id twice in a message": (
        request(user(), calls("call_1", "call_1"), result()),
        "Invalid parameter: Duplicate value for 'id' of 'call_1' in messages[2].tool_calls.",
    ),
    "a call id that is too long": (
        request(user(), calls(LONG), result(LONG)),
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum "
        "length 64, but got a string with length 65 instead.",
    ),
    "a result's id that is too long": (
        request(user(), calls("call_1"), result(LONG)),
        "Invalid 'messages[3].tool_call_id': string too long. Expected a string with maximum "
        "length 64, but got a string with length 65 instead.",
    ),
    "arguments that are no string": (
        request(user(), calls("call_1", arguments={}), result()),
        "Invalid type for 'messages[2].tool_calls[0].function.arguments': expected a string, but "
        "got an object instead.",
    ),
    "a message that says nothing": (
        request({"role": "assistant", "content": None}),
        "Invalid value for 'content': expected a string, got null.",
    ),
    "reasoning, which this protocol does not know": (
        request(user(), {"role": "assistant", "content": [{"type": "reasoning", "id": "rs_1"}]}),
        "Invalid value: 'reasoning'. Supported values are: 'text' and 'refusal'.",
    ),
    "tools left out": (
        request(user(), calls("call_1"), result(), tools=None),
        SEND_AGAIN.format("tools"),
    ),
    "instructions left out": (
        {**request(), "messages": [user(), calls("call_1"), result()]},
        SEND_AGAIN.format("instructions"),
    ),
    "no tool in the list": (
        request(user(), tools=[]),
        "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty "
        "array instead.",
    ),
    "parallel calls without tools": (
        request(user(), tools=None, parallel_tool_calls=True),
        "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when "
        "'tools' are specified.",
    ),
    "an open schema": (
        request(user(), tools=[tool("get_order", parameters=OPEN_SCHEMA)]),
        "Invalid schema for function 'get_order': In context=(), 'additionalProperties' is "
        "required to be supplied and to be false.",
    ),
    "an answer schema with an optional property": (
        request(
            user(),
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": LOOSE},
            },
        ),
        "Invalid schema for response_format 'answer': In context=(), 'required' is required to be "
        "supplied and to be an array including every key in properties. Missing 'order_id'.",
    ),
    "an item of the other protocol": (
        request(user(), {"type": "function_call_output", "call_id": "c", "output": "x"}),
        "Invalid value: 'None'. Supported values are: 'system', 'developer', 'user', 'assistant' "
        "and 'tool'.",
    ),
    "a parameter of the other protocol": (
        request(user(), previous_response_id="resp_1"),
        "Unknown parameter: 'previous_response_id'.",
    ),
    "no messages": ({"model": "m"}, "Missing required parameter: 'messages'."),
}


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_malformed_request_is_refused(
    client: httpx2.AsyncClient, fault: str, stream: bool
) -> None:
    sent, message = REFUSED[fault]
    response = await client.post("/chat/completions", json={**sent, "stream": stream})
    error = response.json()["error"]
    assert (response.status_code, error["message"]) == (400, message)
    assert error["type"] == "invalid_request_error"


async def test_stream_options_belong_to_a_stream(client: httpx2.AsyncClient) -> None:
    response = await client.post("/chat/completions", json=request(user(), **USAGE))
    assert response.status_code == 400
    assert "only allowed when 'stream' is enabled" in response.text
