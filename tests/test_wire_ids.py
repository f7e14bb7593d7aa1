"""Ids of calls as they are sent: what a server takes, told apart, the same in call and result."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agent.wire import names, outgoing

PROTOCOLS = {
    "responses": (outgoing.for_responses, names.OPENAI),
    "chat": (outgoing.for_chat, names.OPENAI),
    "messages": (outgoing.for_messages, names.MESSAGES),
}

every_protocol = pytest.mark.parametrize("name", PROTOCOLS)


def conversation(*rounds: Sequence[str], first_response: str = "") -> list[AnyMessage]:
    """A round for each list of call ids, with its results."""
    told: list[AnyMessage] = [HumanMessage("Where are they?")]
    for number, round_ in enumerate(rounds):
        calls: list[Any] = [{"id": id_, "name": "get_order", "args": {}} for id_ in round_]
        metadata = {"id": first_response} if number == 0 else {}
        told.append(AIMessage("", tool_calls=calls, response_metadata=metadata))
        told += [ToolMessage(f"{number} {id_}", tool_call_id=id_) for id_ in round_]
    return told


def sent(messages: Sequence[AnyMessage]) -> tuple[list[str], list[str]]:
    """The ids of the calls, and those of the results."""
    asked = [
        call["id"] or "" for m in messages if isinstance(m, AIMessage) for call in m.tool_calls
    ]
    return asked, [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]


@every_protocol
def test_an_id_of_64_characters_is_sent_as_it_is_and_a_longer_one_is_shortened(name: str) -> None:
    before = conversation(["a" * 64, "b" * 65, "b" * 85])
    outgoing, fits = PROTOCOLS[name]
    asked, told = sent(outgoing(before))
    assert asked == told
    assert asked[0] == "a" * 64
    assert len(set(asked)) == 3
    assert all(fits.fullmatch(id_) for id_ in asked)
    assert sent(before)[0] == ["a" * 64, "b" * 65, "b" * 85]


def test_messages_gets_no_id_with_other_characters_and_the_rest_keeps_it() -> None:
    before = conversation(["functions.refund:0", "functions_refund_0", "zurück"])
    asked, told = sent(outgoing.for_messages(before))
    assert asked == told
    assert asked[1] == "functions_refund_0"
    assert len(set(asked)) == 3
    assert all(names.MESSAGES.fullmatch(id_) for id_ in asked)
    assert sent(outgoing.for_chat(before))[0] == sent(before)[0]


@every_protocol
def test_ids_that_start_again_in_a_later_round_are_told_apart_where_the_vendor_minds(
    name: str,
) -> None:
    asked, told = sent(PROTOCOLS[name][0](conversation(["call_0", "call_1"], ["call_0"])))
    assert asked == told
    assert asked[:2] == ["call_0", "call_1"]
    assert (asked[2] != "call_0") == (name == "messages")


def test_the_items_of_responses_name_what_their_results_name() -> None:
    before = conversation(["c" * 80], ["call_0"])
    items = outgoing.for_responses(before)
    named = [block["call_id"] for m in items if isinstance(m, AIMessage) for block in _blocks(m)]
    assert named == sent(items)[1]
    assert named[1] == "call_0"


def test_an_item_id_never_stands_in_for_the_call_id() -> None:
    before = conversation(["call_0"], ["call_0"])
    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_0",
        "name": "n",
        "arguments": "{}",
    }
    before[3] = before[3].model_copy(update={"content": [item]})
    again = outgoing.for_responses(before)[3]
    assert isinstance(again, AIMessage)
    [block] = _blocks(again)
    assert block["id"] == "fc_1"
    assert block["call_id"] == sent([again])[0][0] == "call_0"


def _blocks(message: AIMessage) -> list[dict[str, Any]]:
    return [block for block in message.content if isinstance(block, dict)]


def test_what_the_vendor_keeps_is_answered_under_the_vendors_own_id() -> None:
    before = conversation(["x" * 70], ["call_0"], first_response="resp_1")
    asked, told = sent(outgoing.for_responses(before, chained=True))
    assert asked == told == ["x" * 70, "call_0"]
    assert sent(outgoing.for_responses(before))[1][0] != "x" * 70


odd_ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=90) | st.sampled_from(
    ["call_0", "a.b", "a:b", "x" * 64, "x" * 65]
)


@given(
    st.lists(st.lists(odd_ids, unique=True, max_size=4), max_size=4),
    st.sampled_from(sorted(PROTOCOLS)),
)
def test_no_two_calls_meet_and_nothing_depends_on_when_it_is_sent(
    rounds: list[list[str]], name: str
) -> None:
    once = sent(PROTOCOLS[name][0](conversation(*rounds)))
    ends = [0, *accumulate(map(len, rounds))]
    for start, end in pairwise(ends):
        assert len(set(once[0][start:end])) == end - start
    # Ids of ours that come back, as a model might repeat them, meet nothing either.
    more = sent(PROTOCOLS[name][0](conversation(*rounds, once[0][:4])))
    for asked, told in (once, more):
        assert asked == told
        if name == "messages":
            assert len(set(asked)) == len(asked)
        assert all(PROTOCOLS[name][1].fullmatch(id_) for id_ in asked)
    assert more[0][: len(once[0])] == once[0]
