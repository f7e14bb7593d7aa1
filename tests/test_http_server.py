"""The agent against a real server on loopback: the same answers as offline, and every failure."""

from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.commands import Done, here, run
from tests.demo_data import check_only, tracking
from tests.responses_server import (
    KEY,
    Behaviour,
    Request,
    before_the_end,
    cut,
    good,
    html,
    in_the_last_item,
    no_events,
    nobody_listens,
    saying,
    serving,
    status,
    variables,
)
from tests.turns import ask, graph_of
from tools.database import Database

TWO = "Where are order A-18 and order B-21?"
WRONG = f"B-21 arrives tomorrow, as {min(tracking('A'))}."

QUESTIONS = [
    TWO,
    "When will orders A and B arrive?",
    "What is in order A-17?",
    "Where is order ZZ-404, and where is order B?",
    "Which orders do I have?",
    "Hello!",
    "Can you sing?",
]


def _unnamed(turn: Any) -> Any:
    """A turn without what is new each time: calls are told apart by their place."""
    places = {call["call_id"]: place for place, call in enumerate(turn["calls"])}
    kept = ("tool", "subject", "arguments", "round", "status", "output", "error")
    return {
        **{name: turn[name] for name in ("status", "message", "locale", "rounds", "error")},
        "calls": [{name: call[name] for name in kept} for call in turn["calls"]],
        "cards": [{**card, "call_id": places[card["call_id"]]} for card in turn["cards"]],
    }


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_server_gives_the_same_answer_as_offline(question: str) -> None:
    offline = here("ask", question, "--json")
    with serving() as server:
        online = here("ask", question, "--json", **server.variables())
    assert online.code == offline.code == 0
    assert _unnamed(online.json) == _unnamed(offline.json)


def test_two_orders_get_their_own_data_from_a_server_in_a_real_process() -> None:
    with serving() as server:
        turn = run("ask", TWO, "--json", **server.variables()).json
    assert [call["subject"] for call in turn["calls"]] == ["A-18", "B-21"]
    check_only(turn["message"], "A-18", "B-21")


def test_a_follow_up_goes_to_the_server_with_the_whole_conversation() -> None:
    with serving() as server:
        first = here("ask", TWO, "--json", **server.variables()).json
        thread = first["thread_id"]
        second = here("ask", "and the second one?", "--thread", thread, "--json")
        online = here("ask", "and the first one?", "--thread", thread, **server.variables())
        sent = server.requests[-1].body["input"]
    assert [card["subject"] for card in second.json["cards"]] == ["B-21"]
    check_only(online.out, "A-18")
    assert str(sent).count("'type': 'function_call_output'") == 4


async def test_an_unstreamed_server_gives_the_same_answer(database: Database) -> None:
    with serving() as server:
        model = ChatOpenAI(
            model_name="test-model",
            openai_api_key=SecretStr(KEY),
            openai_api_base=server.url,
            use_responses_api=True,
            output_version="responses/v1",
            streaming=False,
            store=False,
        )
        state = await ask(graph_of(model, database=database), TWO)
        assert not any(request.body.get("stream") for request in server.requests)
        assert len(server.requests) == 2
    assert [card["subject"] for card in state["answer"]["cards"]] == ["A-18", "B-21"]
    check_only(state["answer"]["message"], "A-18", "B-21")


def test_a_last_message_of_plain_prose_becomes_default_cards_with_the_right_data() -> None:
    with serving(saying(WRONG)) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    assert turn["status"] == "answered"
    assert [(card["subject"], card["source"]) for card in turn["cards"]] == [
        ("A-18", "default"),
        ("B-21", "default"),
    ]
    assert "tomorrow" not in turn["message"]
    check_only(turn["message"], "A-18", "B-21")


def test_prose_without_any_call_is_shown_only_when_it_states_nothing() -> None:
    with serving(saying("Tell me the number of your order, please.")) as server:
        harmless = here("ask", "Hello!", **server.variables())
    with serving(saying(WRONG)) as server:
        wrong = here("ask", "Hello!", **server.variables())
    assert harmless.out == "Tell me the number of your order, please.\n"
    assert wrong.code == 0
    assert "B-21" not in wrong.out
    assert wrong.out.strip()


def test_each_request_carries_everything_and_the_server_is_asked_to_keep_nothing() -> None:
    with serving() as server:
        thread = here("ask", TWO, "--json", **server.variables()).json["thread_id"]
        here("ask", "and the second one?", "--thread", thread, **server.variables())
        requests = server.requests
    assert len(requests) == 4
    for request in requests:
        _check_request(request)
    assert len({str(request.body["tools"]) for request in requests}) == 1
    assert len({request.body["instructions"] for request in requests}) == 1


def _check_request(request: Request) -> None:
    body = request.body
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert body["model"] == "test-model"
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["parallel_tool_calls"] is True
    assert body.get("previous_response_id") is None
    assert len(body["instructions"]) > 100
    assert {tool["name"] for tool in body["tools"]} > {"get_order", "get_delivery", "list_orders"}
    assert all(tool["strict"] is True for tool in body["tools"])
    assert all(tool["parameters"]["additionalProperties"] is False for tool in body["tools"])
    form = body["text"]["format"]
    assert (form["type"], form["strict"]) == ("json_schema", True)
    assert set(form["schema"]["required"]) == {"locale", "opening", "cards", "closing"}


def test_results_go_back_under_their_own_ids_in_the_order_that_the_server_asked() -> None:
    with serving() as server:
        calls = here("ask", TWO, "--json", **server.variables()).json["calls"]
        sent = server.requests[1].body["input"]
    asked = [item for item in sent if item["type"] == "function_call"]
    told = [item for item in sent if item["type"] == "function_call_output"]
    ids = [call["call_id"] for call in calls]
    assert [item["call_id"] for item in asked] == [item["call_id"] for item in told] == ids
    for item, order_id in zip(told, ("A-18", "B-21"), strict=True):
        check_only(_english(item["output"]), order_id)


def _english(output: str) -> str:
    """A result with its dates as an answer writes them, so that one check serves both."""
    for iso, english in {
        "2026-12-18": "December 18, 2026",
        "2026-12-26": "December 26, 2026",
        "2026-10-29": "October 29, 2026",
    }.items():
        output = output.replace(iso, english)
    return output


FAILURES: dict[str, tuple[Behaviour, str]] = {
    "error 500": (status(500), "model_unavailable"),
    "a key that is refused": (status(401), "model_unavailable"),
    "too many requests for good": (status(429), "model_unavailable"),
    "a page": (html, "model_unavailable|stream_interrupted"),
    "a stream without events": (no_events, "stream_interrupted"),
    "a clean end within a call": (cut(in_the_last_item, cleanly=True), "stream_interrupted"),
    "a lost connection within a call": (cut(in_the_last_item, cleanly=False), "stream_interrupted"),
    "a clean end before the last event": (cut(before_the_end, cleanly=True), "stream_interrupted"),
    "a lost connection before the last event": (
        cut(before_the_end, cleanly=False),
        "stream_interrupted",
    ),
}


@pytest.mark.parametrize(("behaviour", "kind"), FAILURES.values(), ids=FAILURES)
def test_after_a_failure_the_turn_says_so_and_the_thread_goes_on(
    behaviour: Behaviour, kind: str
) -> None:
    with serving(behaviour) as server:
        failed = here("ask", TWO, "--json", **server.variables())
    turn = _failed(failed)
    assert turn["error"]["kind"] in kind.split("|")
    assert (turn["calls"], turn["cards"]) == ([], [])
    _goes_on(turn["thread_id"])


@pytest.mark.parametrize("cleanly", [True, False], ids=["a clean end", "a lost connection"])
def test_a_stream_that_breaks_once_is_asked_for_again(cleanly: bool) -> None:
    with serving(cut(in_the_last_item, cleanly=cleanly), good) as server:
        done = here("ask", "Where is order A-17?", "--json", **server.variables())
        first, again, *_ = server.requests
    # What is left of the broken call names order A, which this customer has.
    assert [call["arguments"] for call in done.json["calls"]] == [{"order_id": "A-17"}]
    assert done.json["status"] == "answered"
    assert first.body == again.body


@pytest.mark.parametrize("cleanly", [True, False], ids=["a clean end", "a lost connection"])
def test_results_are_shown_when_only_the_last_message_breaks(cleanly: bool) -> None:
    with serving(good, cut(in_the_last_item, cleanly=cleanly)) as server:
        turn = _failed(here("ask", TWO, "--json", **server.variables()))
    assert turn["error"]["kind"] == "stream_interrupted"
    assert [call["status"] for call in turn["calls"]] == ["ok", "ok"]
    check_only(turn["message"], "A-18", "B-21")
    _goes_on(turn["thread_id"])


def test_a_server_that_is_busy_for_a_moment_is_asked_again() -> None:
    with serving(status(429), status(503), good) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
        assert len(server.requests) == 4
    check_only(turn["message"], "A-18", "B-21")


def test_a_server_that_hangs_up_is_said_to_be_unreachable() -> None:
    with serving() as server:
        server.hangs_up = True
        turn = _failed(here("ask", TWO, "--json", **server.variables()))
        assert server.connections >= 1
    assert turn["error"]["kind"] == "model_unavailable"
    _goes_on(turn["thread_id"])


def test_an_address_where_nobody_listens_is_said_to_be_unreachable() -> None:
    hidden = nobody_listens().replace("http://", "http://user:hunter2@")
    done = here("ask", TWO, "--json", **variables(hidden))
    assert "hunter2" not in done.out + done.err
    assert _failed(done)["error"]["kind"] == "model_unavailable"


@pytest.mark.parametrize(("code", "said"), [(401, "HTTP 401"), (404, "HTTP 404")])
def test_who_operates_it_reads_on_stderr_why_the_model_gave_no_answer(code: int, said: str) -> None:
    with serving(status(code)) as server:
        done = here("ask", TWO, **server.variables())
    assert done.code == 1
    assert len(done.out.splitlines()) == 1
    assert said in done.err
    assert KEY not in done.out + done.err


def test_a_page_instead_of_an_answer_is_not_called_an_unreachable_server() -> None:
    with serving(html) as server:
        turn = _failed(here("ask", TWO, "--json", **server.variables()))
    assert "could not be reached" not in turn["error"]["message"]


def test_what_went_wrong_with_a_cut_stream_is_said_in_words() -> None:
    with serving(cut(in_the_last_item, cleanly=True)) as server:
        turn = _failed(here("ask", TWO, "--json", **server.variables()))
    assert "None" not in turn["error"]["message"]


def test_a_proxy_in_the_environment_is_used() -> None:
    with serving() as server:
        address = server.url.removesuffix("/v1")
        asked = variables("http://model.invalid/v1", HTTP_PROXY=address)
        done = here("ask", TWO, **asked)
    assert done.code == 0
    check_only(done.out, "A-18", "B-21")


def _failed(done: Done) -> Any:
    """The turn of a command that could not answer, in one sentence of the product's own."""
    assert done.code == 1, done
    assert "Something unexpected" not in done.err
    assert KEY not in done.out + done.err
    turn = done.json
    assert turn["status"] == "failed"
    assert turn["message"]
    assert turn["error"]["message"].endswith(".")
    return turn


def _goes_on(thread: str) -> None:
    with serving() as server:
        turn = here("ask", TWO, "--thread", thread, "--json", **server.variables()).json
    assert (turn["status"], turn["turn"], turn["thread_id"]) == ("answered", 2, thread)
    check_only(turn["message"], "A-18", "B-21")
