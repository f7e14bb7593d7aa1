"""Servers that do less than the best: what the agent gives up, and what `check-model` says of them.

The servers are the one on loopback, each lacking something.
"""

import asyncio
import json
import logging
import sys
import threading
from types import ModuleType
from typing import Any

import pytest

from agent.problems import Problem
from agent.settings import Settings
from agent.wire.connect import connect
from tests.commands import Done, here, refused
from tests.demo_data import check_only
from tests.responses_server import (
    KEY,
    Behaviour,
    Exchange,
    good,
    html,
    nobody_listens,
    refusing,
    saying,
    serving,
    status,
    variables,
)
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, graph_of
from tools.database import Database

TWO = "Where are order A-18 and order B-21?"
CHAT = {"SUPPORT_OPENAI_API": "chat"}
PROMPT = {"SUPPORT_ANSWER_FORMAT": "prompt"}
NO_SCHEMA = [
    pytest.param("responses", "text.format", "Unsupported parameter: 'text.format'.", id="OpenAI"),
    pytest.param("chat", "response_format", "response_format is not supported.", id="plain"),
    pytest.param(
        "chat",
        "response_format",
        "Cannot use custom grammar constraints with tools.",
        id="llama.cpp",
    ),
    pytest.param(
        "chat",
        "response_format",
        "Function calling with a response mime type: 'application/json' is unsupported",
        id="Gemini",
    ),
    pytest.param(
        "chat",
        "response_format",
        "json mode cannot be combined with tool/function calling",
        id="Groq",
    ),
]


def settings_of(url: str, api: str, **more: Any) -> Settings:
    online: dict[str, Any] = {"openai_api_key": KEY, "openai_base_url": url, "openai_api": api}
    return Settings(**{"model": "openai:test-model", **online, **more})


# The answer's schema.


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_the_schema_goes_in_words_where_the_settings_say_so(
    api: str, database: Database
) -> None:
    with serving() as server:
        settings = settings_of(server.url, api, answer_format="prompt")
        state = await ask(graph_of(settings=settings, database=database), TWO)
        bodies = server.bodies
    check_only(state["answer"]["message"], "A-18", "B-21")
    assert {card["source"] for card in state["answer"]["cards"]} == {"model"}
    for body in bodies:
        told = body["instructions"] if api == "responses" else body["messages"][0]["content"]
        assert '"closing"' in told
        assert "response_format" not in body
        assert "text" not in body or "format" not in body["text"]
        assert body["tools"]


@pytest.mark.parametrize(("api", "field", "words"), NO_SCHEMA)
async def test_a_server_that_refuses_the_schema_is_asked_again_in_words_once_for_all(
    api: str, field: str, words: str, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(refusing(field, words)) as server, caplog.at_level(logging.WARNING, "agent"):
        graph = graph_of(settings=settings_of(server.url, api), database=database)
        first = await ask(graph, TWO)
        second = await ask(graph, "and the second one?")
        with_schema = [body for body in server.bodies if _has(body, field)]
        assert (len(with_schema), len(server.requests)) == (1, 5)
    check_only(first["answer"]["message"], "A-18", "B-21")
    check_only(second["answer"]["message"], "B-21")
    assert [
        record.message for record in caplog.records if record.name.startswith("agent.wire")
    ] == ["the server refuses an answer schema: it is put in words from now on"]


async def test_turns_that_run_at_once_all_give_up_the_schema(database: Database) -> None:
    together = threading.Barrier(4)

    def refuse_all_at_once(exchange: Exchange) -> None:
        if _has(exchange.asked.body, "text.format"):
            together.wait(timeout=20)
        refusing("text.format", "Unknown parameter: 'text.format'.")(exchange)

    with serving(refuse_all_at_once) as server:
        graph = graph_of(settings=settings_of(server.url, "responses"), database=database)
        states = await asyncio.gather(*(ask(graph, TWO, thread) for thread in "abcd"))
    for state in states:
        check_only(state["answer"]["message"], "A-18", "B-21")


async def test_another_refusal_is_not_taken_for_one_of_the_schema(database: Database) -> None:
    with serving(status(400)) as server:
        graph = graph_of(settings=settings_of(server.url, "responses"), database=database)
        state = await ask(graph, TWO)
        assert len(server.requests) == 1
    assert state["answer"]["error"]["kind"] == "model_unavailable"


async def test_what_a_restarted_server_forgot_and_never_learned_is_both_given_up(
    database: Database,
) -> None:
    def neither(exchange: Exchange) -> None:
        refuse = refusing("text.format", "Unknown parameter: 'text.format'.")
        chained = exchange.asked.body.get("previous_response_id")
        (good if chained else refuse)(exchange)

    with serving() as server:
        settings = settings_of(server.url, "responses", store_responses=True)
        graph = graph_of(settings=settings, database=database)
        await ask(graph, TWO)
        server.forget()
        server.behave(neither)
        state = await ask(graph, "and the second one?")
    check_only(state["answer"]["message"], "B-21")


def _has(body: Any, field: str) -> bool:
    for name in field.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body is not None


# Other providers.


@pytest.fixture
def langchain(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """LangChain's table of providers, with one provider; what was asked of it."""
    asked: list[tuple[str, str]] = []
    model = Scripted(
        calling(("c1", "get_order", {"order_id": "A"})), answering(("c1", "{order_id} {status}"))
    )

    def init_chat_model(name: str, *, model_provider: str) -> Scripted:
        asked.append((model_provider, name))
        if model_provider != "invented":
            raise ValueError(f"Unsupported provider, key {KEY}")
        return model

    module = ModuleType("langchain.chat_models")
    module.init_chat_model = init_chat_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "langchain", ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)
    return asked


async def test_another_provider_is_asked_through_langchain_with_a_warning(
    langchain: list[tuple[str, str]], database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(model="invented:large:v2")
    state = await ask(graph_of(settings=settings, database=database), "And A?")
    assert langchain == [("invented", "large:v2")]
    assert state["answer"]["message"].startswith("A ")
    assert "without a guard on the wire" in caplog.text


def test_a_provider_that_langchain_does_not_know_is_said_without_its_words(
    langchain: list[tuple[str, str]],
) -> None:
    with pytest.raises(Problem, match="SUPPORT_MODEL is somebody:else") as raised:
        connect(Settings(model="somebody:else"))
    assert KEY not in str(raised.value)


def test_without_langchain_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    monkeypatch.setitem(sys.modules, "langchain", None)
    done = here("ask", TWO, SUPPORT_MODEL="invented:large")
    refused(done, "langchain is not installed", "names for invented")


@pytest.mark.parametrize("model", ["gpt-5", "openai:", ":gpt-5", "Open AI:gpt-5", "openai: "])
def test_a_model_without_provider_or_name_is_a_wrong_setting(model: str) -> None:
    refused(here("check-model", SUPPORT_MODEL=model), "SUPPORT_MODEL", "openai:gpt-5")


# check-model.


def findings(done: Done) -> dict[str, str]:
    """The lines of the report by what they are about."""
    lines = [line.split("  ", 1) for line in done.out.splitlines() if "  " in line]
    return {name: said.strip() for name, said in lines}


def all_but(**less: str) -> dict[str, str]:
    best = {"tools": "yes", "parallel calls": "yes", "strict schemas": "yes", "streaming": "yes"}
    return {**best, **{name.replace("_", " "): said for name, said in less.items()}}


def one_call(exchange: Exchange) -> None:
    """A server that makes one call at a time."""
    _as_if(exchange, parallel_tool_calls=False)


def no_calls(exchange: Exchange) -> None:
    """A server that knows no tools."""
    _as_if(exchange, tools=None, parallel_tool_calls=None)


def no_calls_beside_a_schema(exchange: Exchange) -> None:
    body = exchange.asked.body
    schema = _has(body, "text.format") or "response_format" in body
    (no_calls if schema and "call_id" not in str(body) else good)(exchange)


def schema_ignored(exchange: Exchange) -> None:
    """A server that takes the schema and writes what it likes."""
    saying("All is well.")(exchange)


def unstreamed(exchange: Exchange) -> None:
    _as_if(exchange, stream=False, stream_options=None)


def _as_if(exchange: Exchange, **other: Any) -> None:
    """The reply to a request that asked for something else."""
    body = {**exchange.asked.body, **other}
    exchange.answer({name: value for name, value in body.items() if value is not None})
    good(exchange)


LESS: list[tuple[Behaviour, dict[str, str], int, str]] = [
    (good, all_but(), 0, ""),
    (one_call, all_but(parallel_calls="no"), 0, "one at a time"),
    (
        no_calls,
        all_but(tools="no", parallel_calls="unknown", strict_schemas="unknown"),
        1,
        "another model",
    ),
    (
        no_calls_beside_a_schema,
        all_but(strict_schemas="no"),
        1,
        "SUPPORT_ANSWER_FORMAT=prompt",
    ),
    (schema_ignored, all_but(strict_schemas="no"), 0, "SUPPORT_ANSWER_FORMAT=prompt"),
    (
        refusing("response_format", "response_format is not supported."),
        all_but(strict_schemas="no"),
        0,
        "SUPPORT_ANSWER_FORMAT=prompt",
    ),
    (unstreamed, dict.fromkeys(all_but(), "unknown") | {"streaming": "no"}, 1, "stream"),
    (html, dict.fromkeys(all_but(), "unknown") | {"streaming": "no"}, 1, "stream"),
    (status(401), dict.fromkeys(all_but(), "unknown"), 1, "HTTP 401"),
    (status(404), dict.fromkeys(all_but(), "unknown"), 1, "HTTP 404"),
    (status(503), dict.fromkeys(all_but(), "unknown"), 4, "HTTP 503"),
]


@pytest.mark.parametrize(("behaviour", "found", "code", "said"), LESS)
def test_check_model_finds_what_a_chat_server_lacks(
    behaviour: Behaviour, found: dict[str, str], code: int, said: str
) -> None:
    with serving(behaviour) as server:
        done = here("check-model", **server.variables(**CHAT))
    report = findings(done)
    assert report.pop("model") == "openai:test-model, Chat Completions"
    assert report.pop("verdict").startswith("usable") is (code == 0)
    assert (report, done.code) == (found, code), done
    assert said in done.out
    assert KEY not in done.out + done.err


@pytest.mark.parametrize("behaviour", [good, one_call, no_calls, unstreamed])
def test_check_model_finds_the_same_on_responses(behaviour: Behaviour) -> None:
    found, code = next((found, code) for each, found, code, _ in LESS if each is behaviour)
    with serving(behaviour) as server:
        done = here("check-model", **server.variables())
    report = findings(done)
    assert report.pop("model") == "openai:test-model, Responses API"
    report.pop("verdict")
    assert (report, done.code) == (found, code), done


def test_check_model_tells_a_server_without_the_responses_api_to_be_asked_by_chat() -> None:
    def only_chat(exchange: Exchange) -> None:
        chat = exchange.asked.path == "/chat/completions"
        (good if chat else status(404))(exchange)

    with serving(only_chat) as server:
        done = here("check-model", **server.variables())
        again = here("check-model", **server.variables(**CHAT))
    assert done.code == 1
    assert "SUPPORT_OPENAI_API=chat" in done.out
    assert again.code == 0


def test_check_model_finds_nothing_wrong_once_its_advice_is_followed() -> None:
    with serving(no_calls_beside_a_schema) as server:
        done = here("check-model", **server.variables(**CHAT, **PROMPT))
    assert done.code == 0
    assert findings(done)["strict schemas"] == "no"


def test_check_model_is_inconclusive_where_nobody_listens() -> None:
    done = here("check-model", **variables(nobody_listens()))
    assert done.code == 4
    assert "could not be reached" in done.out
    assert set(findings(done).values()) >= {"unknown"}


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_check_model_finds_the_offline_model_usable_and_leaves_nothing_behind(api: str) -> None:
    done = here("check-model", SUPPORT_OPENAI_API=api)
    assert done.code == 0, done
    assert findings(done) | all_but() == findings(done)


def test_check_model_asks_another_provider_without_a_schema(
    langchain: list[tuple[str, str]],
) -> None:
    done = here("check-model", SUPPORT_MODEL="invented:large")
    assert findings(done)["tools"] == "yes"
    assert findings(done)["strict schemas"] == "unknown"
    assert done.code == 0


def test_check_model_keeps_nothing_of_what_it_asked() -> None:
    with serving() as server:
        here("check-model", **server.variables(SUPPORT_STORE_RESPONSES="true"))
        sent = json.dumps(server.bodies)
    assert "previous_response_id" not in sent
