"""The whole graph on Anthropic's Messages API, at a server on loopback."""

import json
from typing import Any

from tests.commands import here
from tests.demo_data import check_only
from tests.messages_server import KEY, MessagesServer, speaking
from tests.streams import Call, chat, frames, messages

TWO = "Where are order A-18 and order B-21?"
ANSWER = json.dumps({"locale": "en", "opening": "", "cards": [], "closing": ""})
A18 = Call("toolu_1", "get_delivery", ('{"order_', 'id":"A-18"}'))
B21 = Call("toolu_2", "get_delivery", ('{"order_id":', '"B-21"}'))


def told(server: MessagesServer, request: int = -1) -> dict[str, Any]:
    """The results of a request, by the id they name."""
    blocks = [b for m in server.bodies[request]["messages"] for b in m["content"] if b != m]
    return {
        block["tool_use_id"]: json.loads(block["content"])
        for block in blocks
        if isinstance(block, dict) and block["type"] == "tool_result"
    }


def test_two_orders_get_their_own_data() -> None:
    with speaking([A18, B21], ANSWER) as server:
        done = here("ask", TWO, "--json", **server.variables())
    turn = done.json
    assert [(call["call_id"], call["subject"]) for call in turn["calls"]] == [
        ("toolu_1", "A-18"),
        ("toolu_2", "B-21"),
    ]
    assert {id_: output["order_id"] for id_, output in told(server).items()} == {
        "toolu_1": "A-18",
        "toolu_2": "B-21",
    }
    check_only(turn["message"], "A-18", "B-21")
    assert turn["usage"]["input_tokens"] == 20
    assert turn["usage"]["output_tokens"] == 4
    assert KEY not in done.out + done.err


def test_each_request_carries_strict_tools_and_the_answers_schema() -> None:
    with speaking([A18], ANSWER) as server:
        here("ask", TWO, **server.variables())
    for body in server.bodies:
        assert all(tool["strict"] is True for tool in body["tools"])
        assert all(tool["input_schema"]["additionalProperties"] is False for tool in body["tools"])
        assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": False}
        schema = body["output_config"]["format"]["schema"]
        assert set(schema["required"]) == {"locale", "opening", "cards", "closing"}
        assert body["stream"] is True
        assert len(str(body["system"])) > 100


def test_a_schema_that_is_refused_is_put_in_words() -> None:
    with speaking([A18], ANSWER) as server:
        server.refuses = lambda body: (
            "output_config: not supported" if "output_config" in body else ""
        )
        assert here("ask", TWO, **server.variables()).code == 0
    assert ["output_config" in body for body in server.bodies] == [True, False, False]


def test_input_that_is_no_json_is_an_error_of_its_own_call_beside_the_good_one() -> None:
    odd = Call("toolu_1", "get_delivery", ('{"order_id":"A-18"}{"order_id"', ':"B-21"}'))
    with speaking([odd, B21], ANSWER) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    first, second = turn["calls"]
    assert (first["error"]["kind"], second["status"]) == ("invalid_arguments", "ok")
    assert first["arguments"] == odd.text
    uses = [b for m in server.bodies[1]["messages"] for b in m["content"] if "input" in b]
    assert [use["input"] for use in uses] == [{}, {"order_id": "B-21"}]
    outputs = told(server)
    assert outputs["toolu_1"]["error"]["kind"] == "invalid_arguments"
    assert outputs["toolu_2"]["status"] == "ok"


def test_input_that_names_a_key_twice_runs_nothing() -> None:
    twice = Call("toolu_1", "get_delivery", ('{"order_id":"A-18","order_id":"B-21"}',))
    with speaking([twice], ANSWER) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    assert [call["error"]["kind"] for call in turn["calls"]] == ["invalid_arguments"]


def test_a_stream_cut_by_its_length_runs_nothing_and_is_asked_again() -> None:
    stream = messages([Call("toolu_1", "get_delivery", ('{"order_id":"A',))])
    cut = [{**stream.last[0], "delta": {"stop_reason": "max_tokens"}}, stream.last[1]]
    with speaking(frames([*stream.first, *stream.lanes[0], *cut]), [A18], ANSWER) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    assert [call["subject"] for call in turn["calls"]] == ["A-18"]
    assert server.bodies[0] == server.bodies[1]


def test_ids_that_start_again_are_told_apart_in_what_is_sent() -> None:
    first, again = (Call("toolu_0", "get_delivery", call.pieces) for call in (A18, B21))
    with speaking([first], [again], ANSWER) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    assert turn["status"] == "answered"
    assert [call["call_id"] for call in turn["calls"]] == ["toolu_0", "toolu_0"]
    assert [output["order_id"] for output in told(server).values()] == ["A-18", "B-21"]


def test_a_thread_with_ids_of_another_vendor_goes_on() -> None:
    with speaking([A18], ANSWER) as server:
        thread = here("ask", TWO, "--json").json["thread_id"]
        again = here("ask", "and B?", "--thread", thread, "--json", **server.variables())
    assert again.json["status"] == "answered"
    assert len(server.bodies) == 2


def test_without_a_key_it_is_said_that_nothing_was_asked() -> None:
    done = here("ask", TWO, SUPPORT_MODEL="anthropic:test-model")
    assert done.code == 2
    assert "ANTHROPIC_API_KEY is not set. Nothing was asked" in done.err


def test_an_answer_in_another_protocol_is_an_interruption() -> None:
    with speaking(frames(chat([], ANSWER).events)) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    assert turn["error"]["kind"] == "stream_interrupted"
    assert len(server.bodies) == 3


def test_a_card_speaks_of_the_call_that_the_server_knows_by_another_id() -> None:
    first = Call("call:0", "get_delivery", ('{"order_id":"A-18"}',))
    second = Call("call:0", "get_delivery", ('{"order_id":"B-21"}',))
    with speaking([first], [second], ANSWER) as server:
        here("ask", TWO, **server.variables())
        sent = list(told(server))
    cards = [{"call_id": id_, "text": "{order_id}: {status}, {parcels}"} for id_ in sent]
    draft = json.dumps({"locale": "en", "opening": "", "cards": cards, "closing": ""})
    with speaking([first], [second], draft) as server:
        turn = here("ask", TWO, "--json", **server.variables()).json
    assert [(card["subject"], card["source"], card["call_id"]) for card in turn["cards"]] == [
        ("A-18", "model", "call:0"),
        ("B-21", "model", "call:0"),
    ]
