"""The offline model speaks the Responses API: to the real client, and in the raw."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_openai import ChatOpenAI
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from offline_model import OfflineTransport
from offline_model.errors import ApiRefusal
from offline_model.store import ResponseStore

URL = "http://offline.invalid/v1"
QUESTION = "When does A-17 arrive and what did I pay for B-21?"
RESULTS = {
    "A-17": {
        "order_id": "A-17",
        "status": "shipped",
        "promised_date": "2025-10-02",
        "parcels": [1],
    },
    "B-21": {"order_id": "B-21", "status": "packed", "total": "12.00", "currency": "EUR"},
}
Item = dict[str, Any]


class Card(BaseModel):
    call_id: str
    text: str


class Answer(BaseModel):
    locale: str
    opening: str
    cards: list[Card]
    closing: str


def get_order(order_id: str) -> str:
    """One order. Card placeholders: required {order_id}, {status}; optional {total}, {items}."""
    return order_id


def get_delivery(order_id: str) -> str:
    """Its delivery. Card placeholders: required {order_id}, {parcels}; optional {status}."""
    return order_id


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    transport = OfflineTransport()
    headers = {"Authorization": "Bearer offline"}
    async with httpx2.AsyncClient(transport=transport, base_url=URL, headers=headers) as client:
        yield client


@pytest.fixture
def model(client: httpx2.AsyncClient) -> Any:
    options: dict[str, Any] = {"model": "offline", "api_key": "offline", "base_url": URL}
    kept: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"]}
    chat = ChatOpenAI(use_responses_api=True, http_async_client=client, **options, **kept)
    bound = chat.bind_tools(
        [get_order, get_delivery], strict=True, response_format=Answer, parallel_tool_calls=True
    )
    return bound.bind(instructions="You help.")


async def invoked(model: Any, messages: list[BaseMessage]) -> AIMessage:
    message: AIMessage = await model.ainvoke(messages)
    return message


async def streamed(model: Any, messages: list[BaseMessage]) -> AIMessage:
    whole = AIMessageChunk(content=[])
    async for chunk in model.astream(messages):
        whole = whole + chunk
    return whole


def results(message: AIMessage) -> list[BaseMessage]:
    return [
        ToolMessage(json.dumps(ok(call["args"]["order_id"])), tool_call_id=call["id"])
        for call in message.tool_calls
    ]


def ok(order_id: str) -> Item:
    return {"status": "ok", "order_id": order_id, "data": RESULTS[order_id]}


# Through the client that the agent uses.


@pytest.mark.parametrize("ask", [invoked, streamed])
async def test_the_client_gets_calls_and_then_an_answer_that_fits_the_schema(
    model: Any, ask: Any
) -> None:
    messages: list[BaseMessage] = [HumanMessage(QUESTION)]
    first = await ask(model, messages)
    assert [(call["name"], call["args"]) for call in first.tool_calls] == [
        ("get_delivery", {"order_id": "A-17"}),
        ("get_order", {"order_id": "B-21"}),
    ]
    last = await ask(model, [*messages, first, *results(first)])
    answer = Answer.model_validate_json(last.text)
    assert not last.tool_calls
    assert [card.call_id for card in answer.cards] == [call["id"] for call in first.tool_calls]
    assert "{parcels}" in answer.cards[0].text
    assert "{total}" in answer.cards[1].text


async def test_a_streamed_answer_is_the_unstreamed_one(model: Any) -> None:
    first = await invoked(model, [HumanMessage(QUESTION)])
    messages = [HumanMessage(QUESTION), first, *results(first)]
    assert (await streamed(model, messages)).text == (await invoked(model, messages)).text


@pytest.mark.parametrize("ask", [invoked, streamed])
async def test_usage_is_counted_once(model: Any, ask: Any) -> None:
    usage = (await ask(model, [HumanMessage(QUESTION)])).usage_metadata
    assert usage["input_tokens"] > 100
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_token_details"]["reasoning"] < usage["output_tokens"]
    assert usage["input_token_details"]["cache_read"] == 0


@pytest.mark.parametrize("ask", [invoked, streamed])
async def test_reasoning_comes_encrypted_and_is_taken_back(model: Any, ask: Any) -> None:
    first = await ask(model, [HumanMessage(QUESTION)])
    kinds = [block["type"] for block in first.content]
    assert kinds == ["reasoning", "function_call", "function_call"]
    assert first.content[0]["encrypted_content"]
    last = await ask(model, [HumanMessage(QUESTION), first, *results(first)])
    assert Answer.model_validate_json(last.text).cards


async def test_many_requests_at_once_do_not_mix(model: Any) -> None:
    asked = [f"Where is Q-{number}?" for number in range(30)]
    replies = await asyncio.gather(*(streamed(model, [HumanMessage(text)]) for text in asked))
    found = [reply.tool_calls[0]["args"]["order_id"] for reply in replies]
    assert found == [f"Q-{number}" for number in range(30)]
    assert len({reply.tool_calls[0]["id"] for reply in replies}) == 30


# In the raw: shapes and events.


def tool(name: str, **more: Any) -> Item:
    parameters = {
        "type": "object",
        "properties": {"order_id": {"type": "string"}},
        "required": ["order_id"],
        "additionalProperties": False,
    }
    told = {"type": "function", "name": name, "description": "", "strict": True}
    return {**told, "parameters": parameters, **more}


def request(*items: Any, **more: Any) -> Item:
    tools = [tool("get_order"), tool("get_delivery")]
    return {"model": "m", "instructions": "You help.", "tools": tools, "input": list(items), **more}


def user(text: str = QUESTION) -> Item:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def call(call_id: str = "call_1", **more: Any) -> Item:
    made = {"type": "function_call", "call_id": call_id, "name": "get_order"}
    return {**made, "arguments": '{"order_id":"A-17"}', **more}


def output(call_id: str = "call_1", **more: Any) -> Item:
    told = {"type": "function_call_output", "call_id": call_id}
    return {**told, "output": json.dumps(ok("A-17")), **more}


def thought(**more: Any) -> Item:
    return {"type": "reasoning", "id": f"rs_{'a' * 32}", "summary": [], **more}


async def answered(client: httpx2.AsyncClient, *items: Any, **more: Any) -> Item:
    response = await client.post("/responses", json=request(*items, **more))
    assert response.status_code == 200, response.text
    body: Item = response.json()
    return body


async def refusal(client: httpx2.AsyncClient, *items: Any, **more: Any) -> Item:
    response = await client.post("/responses", json=request(*items, **more))
    assert response.status_code in (400, 404), response.text
    error: Item = response.json()["error"]
    return error


async def events(client: httpx2.AsyncClient, sent: Item) -> list[Item]:
    async with client.stream("POST", "/responses", json={**sent, "stream": True}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in response.aiter_lines()]
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def unknown_fields(model: BaseModel) -> list[str]:
    """Fields that the SDK's types do not have, at any depth."""
    found = list(model.model_extra or ())
    for value in model.__dict__.values():
        for part in value if isinstance(value, list) else [value]:
            found += unknown_fields(part) if isinstance(part, BaseModel) else []
    return found


@pytest.mark.parametrize("items", [(user(),), (user(), call(), output(), user("hi"))])
async def test_what_is_sent_has_the_shapes_of_the_api(
    client: httpx2.AsyncClient, items: tuple[Item, ...]
) -> None:
    response = await client.post("/responses", json=request(*items))
    parsed = TypeAdapter(Response).validate_python(response.json(), strict=True)
    assert unknown_fields(parsed) == []
    for event in await events(client, request(*items)):
        known: Any = TypeAdapter(ResponseStreamEvent).validate_python(event, strict=True)
        assert unknown_fields(known) == []


async def test_the_events_come_in_the_order_of_the_api(client: httpx2.AsyncClient) -> None:
    found = await events(client, request(user("Where is A-17?")))
    kinds = [event["type"].removeprefix("response.") for event in found]
    deltas = [event for event in found if event["type"].endswith(".delta")]
    assert [kind for kind in kinds if not kind.endswith(".delta")] == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert "".join(event["delta"] for event in deltas) == '{"order_id":"A-17"}'
    assert max(len(event["delta"]) for event in deltas) == 7
    assert found[-1]["response"]["output"][0] == found[-2]["item"]


async def test_the_events_of_a_message_come_in_the_order_of_the_api(
    client: httpx2.AsyncClient,
) -> None:
    found = await events(client, request(user("hello")))
    kinds = [event["type"].removeprefix("response.") for event in found]
    assert [kind for kind in kinds if kind != "output_text.delta"] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


async def test_item_ids_and_call_ids_differ_and_are_unique(client: httpx2.AsyncClient) -> None:
    response = await client.post("/responses", json=request(user()))
    items = response.json()["output"]
    assert all(item["id"].startswith("fc_") for item in items)
    assert all(item["call_id"].startswith("call_") for item in items)
    assert len({item[key] for item in items for key in ("id", "call_id")}) == 4


async def test_call_ids_may_start_again_in_a_later_round(client: httpx2.AsyncClient) -> None:
    again = request(user(), call(), output(), call(), output(), user(), call(), output())
    assert (await client.post("/responses", json=again)).status_code == 200


async def test_without_parallel_calls_one_is_made(client: httpx2.AsyncClient) -> None:
    response = await client.post("/responses", json=request(user(), parallel_tool_calls=False))
    assert len(response.json()["output"]) == 1


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("none", []),
        ("required", ["get_order"]),
        ({"type": "function", "name": "get_delivery"}, ["get_delivery"]),
    ],
)
async def test_the_tool_choice_is_followed(
    client: httpx2.AsyncClient, choice: Any, names: list[str]
) -> None:
    response = await client.post("/responses", json=request(user("hello"), tool_choice=choice))
    assert [item["name"] for item in response.json()["output"] if "name" in item] == names


async def test_without_a_schema_the_answer_is_prose_with_the_values(
    client: httpx2.AsyncClient,
) -> None:
    response = await client.post(
        "/responses", json=request(user("status of A-17"), call(), output())
    )
    text = response.json()["output"][0]["content"][0]["text"]
    assert "A-17" in text
    assert "shipped" in text
    assert "{" not in text


async def test_a_schema_in_the_instructions_gives_json(client: httpx2.AsyncClient) -> None:
    words = "Answer with one JSON object: …"
    sent = request(user("status of A-17"), call(), output(), instructions=words)
    text = (await client.post("/responses", json=sent)).json()["output"][0]["content"][0]["text"]
    assert json.loads(text)["cards"][0]["call_id"] == "call_1"


async def test_another_schema_is_followed_too(client: httpx2.AsyncClient) -> None:
    schema = {
        "type": "object",
        "properties": {"fine": {"type": "boolean"}, "mood": {"enum": ["calm", "brisk"]}},
        "required": ["fine", "mood"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "name": "other", "strict": True, "schema": schema}
    response = await client.post("/responses", json=request(user("hi"), text={"format": form}))
    text = response.json()["output"][0]["content"][0]["text"]
    assert json.loads(text) == {"fine": True, "mood": "calm"}


# Refusals, in the API's words.

UNANSWERED = "No tool output found for function call call_1."
LONG = "c" * 85
OPEN_SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}
LOOSE = {**OPEN_SCHEMA, "additionalProperties": False, "required": []}
REFUSED: dict[str, tuple[Item, str]] = {
    "a call without its output at the end": (request(user(), call()), UNANSWERED),
    "a call without its output before the next message": (
        request(user(), call(), user("and?"), output()),
        UNANSWERED,
    ),
    "one output of two": (
        request(user(), call(), call("call_2"), output("call_2")),
        UNANSWERED,
    ),
    "an output without a call": (
        request(user(), output("call_9")),
        "No tool call found for function call output with call_id call_9.",
    ),
    "two outputs of one call": (
        request(user(), call(), output(), output()),
        "Duplicate function_call_output for call_id 'call_1'. Each function_call must have exactly "
        "one matching function_call_output.",
    ),
    "one call id twice in a response": (
        request(user(), call(), call(), output(), output()),
        "Duplicate function_call for call_id 'call_1'.",
    ),
    "one item id twice": (
        request(user(), call(id="fc_1"), output(), call("call_2", id="fc_1"), output("call_2")),
        "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.",
    ),
    "a call id as item id": (
        request(user(), user(), call(id="call_x"), output()),
        "Invalid 'input[2].id': 'call_x'. Expected an ID that begins with 'fc'.",
    ),
    "a call id that is too long": (
        request(user(), call(LONG), output(LONG)),
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, "
        "but got a string with length 85 instead.",
    ),
    "an empty call id": (
        request(user(), call(""), output("")),
        "Invalid 'input[1].call_id': empty string. Expected a string with minimum length 1, "
        "but got an empty string instead.",
    ),
    "arguments that are no string": (
        request(user(), call(arguments={"order_id": "A-17"}), output()),
        "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
    ),
    "an output that is no string": (
        request(user(), call(), output(output={"status": "ok"})),
        "Invalid type for 'input[2].output': expected one of an array of objects or a string, "
        "but got an object instead.",
    ),
    "tools left out": (
        request(user(), call(), output(), tools=[]),
        "The input holds function calls, but the request came without tools. Tools and "
        "instructions are not carried over: tools must be sent again with every request.",
    ),
    "instructions left out": (
        request(user(), call(), output(), instructions=None),
        "The input holds function calls, but the request came without instructions. Tools and "
        "instructions are not carried over: instructions must be sent again with every request.",
    ),
    "an open schema": (
        request(user(), tools=[tool("get_order", parameters=OPEN_SCHEMA)]),
        "Invalid schema for function 'get_order': In context=(), 'additionalProperties' is "
        "required to be supplied and to be false.",
    ),
    "a schema with an optional property": (
        request(user(), tools=[tool("get_order", parameters=LOOSE)]),
        "Invalid schema for function 'get_order': In context=(), 'required' is required to be "
        "supplied and to be an array including every key in properties. Missing 'order_id'.",
    ),
    "a response that nobody kept": (
        request(user(), previous_response_id="resp_9"),
        "Previous response with id 'resp_9' not found.",
    ),
    "a conversation that goes on from a response, and is not to be kept": (
        request(user(), previous_response_id="resp_9", store=False),
        "Unsupported value: 'store' is not supported with 'previous_response_id' when it is false. "
        "A conversation goes on from a response that was kept; send the whole input instead.",
    ),
    "reasoning that cannot be read": (
        request(user(), thought(encrypted_content="x"), user()),
        f"The encrypted content for item rs_{'a' * 32} could not be verified. Reason: Encrypted "
        "content could not be decrypted or parsed.",
    ),
    "an item without the reasoning that led to it": (
        request(user(), call(id=f"fc_{'a' * 32}01234567"), output()),
        f"Item 'fc_{'a' * 32}01234567' of type 'function_call' was provided without its required "
        f"'reasoning' item: 'rs_{'a' * 32}'.",
    ),
    "an unknown parameter": (request(user(), tool_chioce=1), "Unknown parameter: 'tool_chioce'."),
    "a parameter of another type": (
        request(user(), temperature="warm"),
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
    ),
    "no model": (request(user(), model=None), "Missing required parameter: 'model'."),
    "an unknown role": (
        request({"role": "tool", "content": "x"}),
        "Invalid value: 'tool'. Supported values are: 'user', 'assistant', 'system' and "
        "'developer'.",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_malformed_request_is_refused(
    client: httpx2.AsyncClient, fault: str, stream: bool
) -> None:
    sent, message = REFUSED[fault]
    response = await client.post("/responses", json={**sent, "stream": stream})
    error = response.json()["error"]
    assert (response.status_code, error["message"]) == (400, message)
    assert error["type"] == "invalid_request_error"
    assert set(error) == {"message", "type", "param", "code"}


# What is kept: `previous_response_id`.


async def test_a_conversation_goes_on_from_the_response_before(client: httpx2.AsyncClient) -> None:
    first = await answered(client, user())
    told = [
        output(item["call_id"], output=json.dumps(ok(json.loads(item["arguments"])["order_id"])))
        for item in first["output"]
    ]
    last = await answered(client, *reversed(told), previous_response_id=first["id"])
    later = await answered(client, user("and the first one?"), previous_response_id=last["id"])
    assert last["previous_response_id"] == first["id"]
    assert "B-21 is packed" in last["output"][0]["content"][0]["text"]
    assert json.loads(later["output"][0]["arguments"]) == {"order_id": "A-17"}
    assert later["usage"]["input_tokens"] > first["usage"]["input_tokens"]


async def test_a_conversation_may_go_on_twice_from_one_response(client: httpx2.AsyncClient) -> None:
    first = await answered(client, user("status of A-17?"))
    told = output(first["output"][0]["call_id"])
    for _ in range(2):
        again = await answered(client, told, previous_response_id=first["id"])
        assert again["output"][0]["type"] == "message"


async def test_a_call_of_a_kept_response_must_be_answered(client: httpx2.AsyncClient) -> None:
    first = await answered(client, user())
    open_call, other = (item["call_id"] for item in first["output"])
    for items in ([output(other)], [user("and?")], [output(other), user("and?")]):
        error = await refusal(client, *items, previous_response_id=first["id"])
        assert error["message"] == f"No tool output found for function call {open_call}."


@pytest.mark.parametrize("what", ["tools", "instructions"])
async def test_neither_tools_nor_instructions_are_kept(
    client: httpx2.AsyncClient, what: str
) -> None:
    first = await answered(client, user("status of A-17?"))
    told = output(first["output"][0]["call_id"])
    error = await refusal(client, told, previous_response_id=first["id"], **{what: None})
    assert error["message"].endswith(f"{what} must be sent again with every request.")


async def test_what_was_not_to_be_kept_is_not_found(client: httpx2.AsyncClient) -> None:
    first = await answered(client, user("hello"), store=False)
    error = await refusal(client, user("and?"), previous_response_id=first["id"])
    assert (error["code"], error["param"]) == (
        "previous_response_not_found",
        "previous_response_id",
    )


async def test_the_oldest_response_is_forgotten_first() -> None:
    store = ResponseStore(most=2)
    for number in range(3):
        store.keep(f"resp_{number}", [user()])
    assert len(store.conversation("resp_2")) == len(store.conversation("resp_1")) == 1
    with pytest.raises(ApiRefusal, match="'resp_0' not found"):
        store.conversation("resp_0")


async def test_reasoning_of_a_response_that_was_not_kept_is_not_found_by_its_id(
    client: httpx2.AsyncClient,
) -> None:
    for store, found in ((True, True), (False, False)):
        first = await answered(client, user(), store=store, reasoning={"effort": "low"})
        told = [output(item["call_id"]) for item in first["output"][1:]]
        sent = request(user(), *first["output"], *told)
        response = await client.post("/responses", json=sent)
        assert (response.status_code == 200) is found
        assert found or "Items are not persisted" in response.text


async def test_reasoning_stands_before_what_it_led_to(client: httpx2.AsyncClient) -> None:
    first = await answered(client, user(), reasoning={"effort": "low"})
    reasoned, *calls = first["output"]
    told = [output(item["call_id"]) for item in calls]
    error = await refusal(client, user(), *calls, *told, reasoned)
    assert error["message"].endswith("without its required following item.")


async def test_a_body_that_is_no_json_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.post("/responses", content=b'{"model": "m"')
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("We could not parse the JSON body")


async def test_an_unknown_path_is_not_found(client: httpx2.AsyncClient) -> None:
    response = await client.post("/chat", json={})
    assert response.status_code == 404
    assert response.json()["error"]["message"] == "Invalid URL (POST /v1/chat)"


async def test_a_request_without_a_key_is_refused() -> None:
    async with httpx2.AsyncClient(transport=OfflineTransport(), base_url=URL) as client:
        response = await client.post("/responses", json=request(user()))
    assert response.status_code == 401
    assert response.json()["error"]["message"].startswith("You didn't provide an API key.")
