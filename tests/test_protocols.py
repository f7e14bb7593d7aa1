"""The whole graph on each way to talk to OpenAI's API: offline, and to a server on loopback.

Responses with the whole history each time, Responses that go on from what the vendor keeps, and
Chat Completions: the customer must not be able to tell which.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from agent.graph import Graph
from agent.history.langchain import check
from agent.settings import Settings
from tests.commands import here
from tests.demo_data import check_only
from tests.responses_server import (
    KEY,
    Exchange,
    ResponsesServer,
    cut,
    good,
    in_the_last_item,
    refusing,
    saying,
    serving,
    status,
)
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, cards_of, config_of, graph_of, question, results_of
from tools.database import Database
from tools.registry import TOOLS
from tools.tool import Arguments, Context, Tool

pytestmark = pytest.mark.on_both("long")

TWO = "Where are order A-18 and order B-21?"
WAYS: dict[str, dict[str, Any]] = {
    "whole": {},
    "chained": {"store_responses": True},
    "chat": {"openai_api": "chat"},
}
Build = Callable[..., Graph]


def settings_of(way: str, server: ResponsesServer | None = None, **more: Any) -> Settings:
    online: dict[str, Any] = {}
    if server:
        online = {
            "model": "openai:test-model",
            "openai_api_key": KEY,
            "openai_base_url": server.url,
        }
    return Settings(**{"model": "offline", **online, **WAYS[way], **more})


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ResponsesServer]:
    with serving() as running:
        yield running


@pytest.fixture(params=["offline", "server"])
def build(request: pytest.FixtureRequest, way: str, database: Database) -> Build:
    """Makes the graph for one way, at one place."""
    at = request.getfixturevalue("server") if request.param == "server" else None

    def graph(**options: Any) -> Graph:
        return graph_of(settings=settings_of(way, at), **{"database": database, **options})

    return graph


# What the customer gets is the same on all of them.


async def test_two_orders_get_their_own_data(build: Build) -> None:
    state = await ask(build(), TWO)
    assert [(card["tool"], card["subject"]) for card in state["answer"]["cards"]] == [
        ("get_delivery", "A-18"),
        ("get_delivery", "B-21"),
    ]
    check_only(state["answer"]["message"], "A-18", "B-21")
    assert state["usage"]["input_tokens"] > state["usage"]["output_tokens"] > 0


async def test_two_tools_are_asked_in_one_response(build: Build) -> None:
    state = await ask(build(), "When does A-17 arrive and what did I pay for B-21?")
    assert [(card["tool"], card["subject"]) for card in state["answer"]["cards"]] == [
        ("get_delivery", "A-17"),
        ("get_order", "B-21"),
    ]
    assert {call["round"] for call in state["calls"]} == {1}


async def test_of_two_calls_the_second_fails_alone(build: Build) -> None:
    state = await ask(build(tools=_about("B-21", _fail)), TWO)
    assert sorted(results_of(state).values()) == [("A-18", "ok"), ("B-21", "service_error")]
    assert len(cards_of(state)) == 2
    check_only(state["answer"]["message"], "A-18")


async def test_an_unknown_order_is_said_beside_the_known_one(build: Build) -> None:
    state = await ask(build(), "Where is order ZZ-404, and where is order B?")
    assert sorted(results_of(state).values()) == [("B", "ok"), ("ZZ-404", "not_found")]
    check_only(state["answer"]["message"], "B")


async def test_a_follow_up_knows_what_was_asked_before(build: Build) -> None:
    graph = build()
    await ask(graph, TWO)
    second = await ask(graph, "and the second one?")
    third = await ask(graph, "and the first one?")
    check_only(second["answer"]["message"], "B-21")
    check_only(third["answer"]["message"], "A-18")


async def test_a_turn_broken_off_among_its_calls_is_closed_by_the_next(build: Build) -> None:
    begun = asyncio.Event()
    threads = InMemorySaver()
    broken = build(tools=_about("B-21", _waiting(begun)), checkpointer=threads)
    await _broken_off(broken, begun, TWO)
    state = await ask(build(checkpointer=threads), "Where is order A-17?")
    check(state["messages"])
    assert state["answer"]["status"] == "answered"
    check_only(state["answer"]["message"], "A-17")


def _about(order_id: str, instead: Callable[[], Any]) -> list[Tool]:
    """The tools; for one order something else happens."""

    def other(tool: Tool) -> Tool:
        async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
            if arguments.get("order_id") == order_id:
                await instead()
            return await tool.run(ctx, arguments, call_id)

        return replace(tool, run=run)

    return [other(tool) for tool in TOOLS]


async def _fail() -> None:
    raise ConnectionError("the service is out of order")


def _waiting(begun: asyncio.Event) -> Callable[[], Any]:
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    return wait


async def _broken_off(graph: Graph, begun: asyncio.Event, text: str) -> None:
    turn = asyncio.create_task(graph.ainvoke(question(text), config_of()))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@pytest.mark.parametrize("prose", ["B-21 arrives tomorrow.", "Both are on their way!"])
async def test_prose_becomes_the_right_default_cards(
    way: str, prose: str, database: Database
) -> None:
    with serving(saying(prose)) as server:
        state = await ask(graph_of(settings=settings_of(way, server), database=database), TWO)
    assert [card["source"] for card in state["answer"]["cards"]] == ["default", "default"]
    assert "tomorrow" not in state["answer"]["message"]
    check_only(state["answer"]["message"], "A-18", "B-21")


@pytest.mark.parametrize("cleanly", [True, False])
async def test_a_response_cut_in_its_last_call_is_asked_for_again(
    way: str, cleanly: bool, database: Database
) -> None:
    with serving(cut(in_the_last_item, cleanly=cleanly), good) as server:
        state = await ask(graph_of(settings=settings_of(way, server), database=database), TWO)
        first, again, _ = server.bodies
    assert first == again
    check_only(state["answer"]["message"], "A-18", "B-21")


# What goes over the wire.


async def test_every_request_carries_instructions_tools_and_the_answers_form(
    way: str, server: ResponsesServer, database: Database
) -> None:
    graph = graph_of(settings=settings_of(way, server), database=database)
    await ask(graph, TWO)
    await ask(graph, "and the second one?")
    assert len(server.requests) == 4
    for request in server.requests:
        told = _chat_told(request.body) if way == "chat" else _responses_told(request.body)
        instructions, tools, form = told
        assert request.path == ("/chat/completions" if way == "chat" else "/responses")
        assert len(instructions) > 100
        assert {tool["name"] for tool in tools} > {"get_order", "get_delivery"}
        assert all(tool["strict"] is True for tool in tools)
        assert set(form["schema"]["required"]) == {"locale", "opening", "cards", "closing"}
        assert form["strict"] is True
        assert request.body["parallel_tool_calls"] is True


def _responses_told(body: Any) -> tuple[str, list[Any], Any]:
    form = body["text"]["format"]
    assert form["type"] == "json_schema"
    return body["instructions"], body["tools"], form


def _chat_told(body: Any) -> tuple[str, list[Any], Any]:
    form = body["response_format"]
    assert form["type"] == "json_schema"
    roles = [message["role"] for message in body["messages"]]
    assert roles.index("system") == 0
    assert roles.count("system") == 1
    tools = [tool["function"] for tool in body["tools"]]
    return body["messages"][0]["content"], tools, form["json_schema"]


async def test_a_kept_conversation_is_sent_only_what_follows(
    server: ResponsesServer, database: Database
) -> None:
    graph = graph_of(settings=settings_of("chained", server), database=database)
    state = await ask(graph, TWO)
    ids = [call["call_id"] for call in state["calls"]]
    await ask(graph, "and the second one?")
    first, second, third, _ = server.bodies
    assert "previous_response_id" not in first
    assert {body["store"] for body in server.bodies} == {True}
    assert second["previous_response_id"] == state["calls"][0]["response_id"]
    assert [(i["type"], i["call_id"]) for i in second["input"]] == [
        ("function_call_output", id_) for id_ in ids
    ]
    assert third["previous_response_id"] not in (None, second["previous_response_id"])
    assert [item["role"] for item in third["input"]] == ["user"]


async def test_a_kept_conversation_begins_anew_where_the_window_is_cut(
    server: ResponsesServer, database: Database
) -> None:
    graph = graph_of(settings=settings_of("chained", server), database=database)
    for number in range(26):
        state = await ask(graph, f"Hello again, {number}.")
    assert state["answer"]["status"] == "answered"
    anew = [place for place, b in enumerate(server.bodies) if "previous_response_id" not in b]
    assert anew == [0, 24]
    asked = [item for item in server.bodies[24]["input"] if item["role"] == "user"]
    assert len(asked) == 12
    assert [item["role"] for item in server.bodies[25]["input"]] == ["user"]


async def test_a_turn_broken_off_tells_every_output_before_the_next_question(
    server: ResponsesServer, database: Database
) -> None:
    threads, begun = InMemorySaver(), asyncio.Event()
    options: dict[str, Any] = {"settings": settings_of("chained", server), "database": database}
    tools = _about("B-21", _waiting(begun))
    await _broken_off(graph_of(tools=tools, checkpointer=threads, **options), begun, TWO)
    await ask(graph_of(checkpointer=threads, **options), "Where is order A-17?")
    _, next_turn, *_ = server.bodies
    assert next_turn["previous_response_id"]
    kinds = [item.get("type") for item in next_turn["input"]]
    assert kinds == ["function_call_output", "function_call_output", "message"]


async def test_a_forgotten_conversation_is_sent_whole_once(
    server: ResponsesServer, database: Database
) -> None:
    graph = graph_of(settings=settings_of("chained", server), database=database)
    await ask(graph, TWO)
    server.forget()
    state = await ask(graph, "and the second one?")
    check_only(state["answer"]["message"], "B-21")
    refused, whole, after = server.bodies[2:]
    assert refused["previous_response_id"]
    assert "previous_response_id" not in whole
    assert [i["type"] for i in whole["input"]].count("function_call_output") == 2
    assert whole["input"][-1] == refused["input"][-1]
    assert after["previous_response_id"]
    assert [item["type"] for item in after["input"]] == ["function_call_output"]


async def test_a_conversation_that_is_refused_whole_too_fails_the_turn(
    server: ResponsesServer, database: Database
) -> None:
    graph = graph_of(settings=settings_of("chained", server), database=database)
    await ask(graph, TWO)
    server.forget()
    server.behave(good, status(400))
    state = await ask(graph, "and the second one?")
    assert state["answer"]["error"]["kind"] == "model_unavailable"
    assert len(server.requests) == 4
    server.behave(good)
    state = await ask(graph, "Where is order A-17?")
    check_only(state["answer"]["message"], "A-17")


ZERO_RETENTION = (
    "Previous response cannot be used for this organization due to Zero Data Retention."
)


async def test_a_vendor_that_keeps_nothing_is_asked_to_go_on_only_once(
    database: Database,
) -> None:
    with serving(refusing("previous_response_id", ZERO_RETENTION)) as server:
        graph = graph_of(settings=settings_of("chained", server), database=database)
        state = await ask(graph, TWO)
        await ask(graph, "and the second one?")
        chained = [body for body in server.bodies if body.get("previous_response_id")]
        assert (len(chained), len(server.requests)) == (1, 5)
    check_only(state["answer"]["message"], "A-18", "B-21")


@pytest.mark.parametrize("store", [False, None, True])
async def test_what_is_not_stored_is_never_gone_on_from(
    store: bool | None, server: ResponsesServer, database: Database
) -> None:
    model = ChatOpenAI(
        model_name="test-model",
        openai_api_key=SecretStr(KEY),
        openai_api_base=server.url,
        use_previous_response_id=True,
        store=store,
    )
    state = await ask(graph_of(model, database=database), TWO)
    check_only(state["answer"]["message"], "A-18", "B-21")
    chained = [body for body in server.bodies if body.get("previous_response_id")]
    assert len(chained) == (0 if store is False else 1)
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["test-model", "gpt-6-test"])
async def test_a_model_of_ones_own_gets_instructions_as_its_client_chose_the_protocol(
    name: str, server: ResponsesServer, database: Database
) -> None:
    key = SecretStr(KEY)
    model = ChatOpenAI(model_name=name, openai_api_key=key, openai_api_base=server.url)
    state = await ask(graph_of(model, database=database), TWO)
    check_only(state["answer"]["message"], "A-18", "B-21")
    for request in server.requests:
        chat = request.path == "/chat/completions"
        told = _chat_told(request.body) if chat else _responses_told(request.body)
        assert chat is (name == "test-model")
        assert len(told[0]) > 100


async def test_encrypted_reasoning_comes_back_before_its_calls(
    server: ResponsesServer, database: Database
) -> None:
    graph = graph_of(settings=settings_of("whole", server), database=database)
    await ask(graph, TWO)
    await ask(graph, "and the second one?")
    items = server.bodies[-1]["input"]
    assert [item["type"] for item in items] == [
        "message",
        *("reasoning", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "message", "message"),
        *("reasoning", "function_call", "function_call_output"),
    ]
    thoughts = [item for item in items if item["type"] == "reasoning"]
    assert all(thought["encrypted_content"] for thought in thoughts)
    assert len({thought["id"] for thought in thoughts}) == 2


async def test_reasoning_that_the_vendor_kept_is_not_sent_once_it_is_forgotten(
    server: ResponsesServer, database: Database
) -> None:
    model = ChatOpenAI(
        model_name="test-model",
        openai_api_key=SecretStr(KEY),
        openai_api_base=server.url,
        use_previous_response_id=True,
        output_version="responses/v1",
        reasoning={"effort": "low"},
        streaming=True,
    )
    graph = graph_of(model, database=database)
    await ask(graph, TWO)
    server.forget()
    state = await ask(graph, "and the second one?")
    check_only(state["answer"]["message"], "B-21")
    whole = server.bodies[3]["input"]
    assert [item["type"] for item in whole].count("function_call") == 2
    assert not [item for item in whole if item["type"] == "reasoning"]
    assert len(server.requests) == 5


async def test_reasoning_that_the_server_cannot_read_is_left_out(database: Database) -> None:
    def unreadable(exchange: Exchange) -> None:
        items = exchange.asked.body["input"]
        words = "The encrypted content for item rs_1 could not be verified."
        behaviour = refusing("input", words, code="invalid_encrypted_content")
        (behaviour if "'reasoning'" in str(items) else good)(exchange)

    with serving(unreadable) as server:
        graph = graph_of(settings=settings_of("whole", server), database=database)
        state = await ask(graph, TWO)
        items = server.bodies[-1]["input"]
    check_only(state["answer"]["message"], "A-18", "B-21")
    calls = [item for item in items if item["type"] == "function_call"]
    assert [("id" in call, len(call["call_id"]) > 0) for call in calls] == [(False, True)] * 2


# One thread on several of them.


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
async def test_a_thread_goes_on_another_way_and_back(
    first: str, second: str, server: ResponsesServer, database: Database
) -> None:
    threads = InMemorySaver()

    async def turn(way: str, text: str) -> Any:
        graph = graph_of(settings=settings_of(way, server), database=database, checkpointer=threads)
        return await ask(graph, text)

    await turn(first, TWO)
    await turn(second, "Where is order A-17?")
    state = await turn(first, "and the first one?")
    assert state["answer"]["status"] == "answered", state["answer"]
    check(state["messages"])
    for body in server.bodies:
        _check_ids(body)


def _check_ids(body: Any) -> None:
    """Results name the call they answer, by its call id; an item id is the API's own, or none."""
    items = body.get("input", [])
    outputs = [item for item in items if item.get("type") == "function_call_output"]
    calls = [item for item in items if item.get("type") == "function_call"]
    assert all(item["call_id"].startswith("call_") for item in [*outputs, *calls])
    assert all(item.get("id", "fc_").startswith("fc_") for item in calls)
    told = [m["tool_call_id"] for m in body.get("messages", []) if m["role"] == "tool"]
    assert all(id_.startswith("call_") for id_ in told)


def test_results_name_their_call_after_a_thread_was_stored(way: str) -> None:
    variables = {
        "SUPPORT_STORE_RESPONSES": str(way == "chained"),
        "SUPPORT_OPENAI_API": "chat" if way == "chat" else "responses",
    }
    with serving() as server:
        asked = server.variables(**variables)
        first = here("ask", TWO, "--json", **asked).json
        second = here("ask", "and the second one?", "--thread", first["thread_id"], **asked)
        for body in server.bodies:
            _check_ids(body)
    assert all(call["item_id"] != call["call_id"] for call in first["calls"])
    check_only(second.out, "B-21")


async def test_ids_that_start_again_keep_their_results_on_the_next_way(
    way: str, server: ResponsesServer, database: Database
) -> None:
    threads = InMemorySaver()
    model = Scripted(
        calling(("call_0", "get_order", {"order_id": "A"})),
        calling(("call_0", "get_order", {"order_id": "B"})),
        answering(),
    )
    await ask(graph_of(model, database=database, checkpointer=threads), "And A and B?")
    graph = graph_of(settings=settings_of(way, server), database=database, checkpointer=threads)
    state = await ask(graph, TWO)
    check_only(state["answer"]["message"], "A-18", "B-21")
    sent = str(server.bodies[0])
    assert sent.count("'arguments'") == 2
    asked = [c for m in state["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]
    assert [call["id"] for call in asked[:2]] == ["call_0", "call_0"]
