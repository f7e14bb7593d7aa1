"""`check` and `repair` as a library: what is found, what is mended, what is left."""

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent.history import NotHistory, check, convert, repair
from tests.histories import (
    WRITE,
    Asks,
    Call,
    Event,
    Events,
    Raw,
    Result,
    Says,
    Split,
    User,
    accepted,
    conversations,
    outputs,
    request,
)
from tests.strategies import LONG, SHORT
from tests.vendors import Refused

every_protocol = pytest.mark.parametrize("name", WRITE)

A, B = Call("call_left", '{"sku":"X-1"}'), Call("call_right", '{"sku":"X-2"}')
ASKED, BOTH = Asks((A,)), Asks((A, B))
REAL = {A.id: {"stock": 31}, B.id: {"stock": 42}}
RESULT_A, RESULT_B = Result(A.id, REAL[A.id]), Result(B.id, REAL[B.id])


def kinds(document: Any) -> list[str]:
    return [finding.kind for finding in check(document)]


# The groups that break everywhere: each in all protocols, before and after.
GROUPS: dict[str, tuple[Events, Events, str]] = {
    "a call, then the user": (
        [User(), ASKED, User("And?")],
        [User(), ASKED, RESULT_A, User("And?")],
        "missing_result",
    ),
    "another id": (
        [User(), ASKED, Result("call_foreign", {"stock": 31}), User("And?")],
        [User(), ASKED, RESULT_A, User("And?")],
        "mismatched_id",
    ),
    "half of a parallel pair": (
        [User(), BOTH, RESULT_A],
        [User(), BOTH, RESULT_A, RESULT_B],
        "missing_result",
    ),
}


@every_protocol
@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_what_breaks_everywhere_is_named_and_mended_with_the_real_results(
    group: tuple[Events, Events, str], name: str
) -> None:
    before, after, kind = group
    broken = request(name, WRITE[name](before))
    with pytest.raises(Refused):
        accepted(name, broken)
    assert kinds(broken) == [kind]
    repaired = repair(broken, REAL)
    assert repaired.document == request(name, WRITE[name](after))
    assert [each.kind for each in repaired.done] == [kind]
    assert repaired.left == []
    accepted(name, repaired.document)


@every_protocol
@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_what_nobody_knows_is_named_and_left_as_it_is(
    group: tuple[Events, Events, str], name: str
) -> None:
    broken = WRITE[name](group[0])
    repaired = repair(broken)
    assert repaired.document is broken
    assert [each.kind for each in repaired.left] == [group[2]]


# More kinds: the history, its kinds, and whether all of it is mended when the results are known.
PLACES: dict[str, tuple[Events, list[str]]] = {
    "a result before its call": ([User(), RESULT_A, ASKED, User()], ["result_before_call"]),
    "words between": ([User(), ASKED, User(), RESULT_A, User()], ["text_between"]),
    "words between two results": (
        [User(), BOTH, RESULT_A, User(), RESULT_B],
        ["text_between"],
    ),
    "a response between": (
        [User(), ASKED, Asks((B,)), RESULT_B, RESULT_A, User()],
        ["text_between"],
    ),
    "an orphan at the beginning": ([RESULT_B, User(), ASKED, RESULT_A], ["orphan_result"]),
    "an orphan behind words": ([User(), Says(), RESULT_A, User()], ["orphan_result"]),
    "a foreign result beside all": ([User(), ASKED, RESULT_A, RESULT_B], ["orphan_result"]),
    "one whose call was cut away": (
        [User(), Says(), RESULT_B, User(), ASKED, RESULT_A, User()],
        ["orphan_result"],
    ),
    "two before their call": (
        [User(), RESULT_A, RESULT_A, ASKED, User()],
        ["result_before_call", "duplicate_result"],
    ),
    "the same twice": ([User(), ASKED, RESULT_A, RESULT_A], ["duplicate_result"]),
    "the same again later": (
        [User(), ASKED, RESULT_A, Says(), User(), RESULT_A, User()],
        ["duplicate_result"],
    ),
    "two that differ": ([User(), ASKED, RESULT_A, Result(A.id, 8)], ["duplicate_result"]),
}


@every_protocol
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_result_out_of_place_is_named_and_mended(
    place: tuple[Events, list[str]], name: str
) -> None:
    events, expected = place
    if name == "responses" and events[1:3] == [ASKED, Asks((B,))]:
        return  # items of one response, there
    broken = request(name, WRITE[name](events))
    assert kinds(broken) == expected
    repaired = repair(broken, REAL)
    assert repaired.left == []
    accepted(name, repaired.document)
    assert repair(repaired.document, REAL).document is repaired.document


@every_protocol
def test_of_two_results_that_differ_none_is_chosen_without_the_real_one(name: str) -> None:
    broken = WRITE[name]([User(), ASKED, Result(A.id, 1), Result(A.id, 2)])
    assert repair(broken).document is broken
    mended = repair(broken, {A.id: 2}).document
    assert mended == WRITE[name]([User(), ASKED, Result(A.id, 2)])


# What no result mends: it is named and left.
HOPELESS: dict[str, tuple[Events, list[str]]] = {
    "an id twice in a response": ([User(), Asks((A, A)), RESULT_A, RESULT_A], ["duplicate_id"]),
    "no id": ([User(), Asks((Call(""),)), Result("")], ["empty_id", "empty_id"]),
    "no id in the result": ([User(), ASKED, Result("")], ["missing_result", "empty_id"]),
    "a long id": ([User(), Asks((Call("c" * 65),)), Result("c" * 65)], ["id_too_long"]),
    "cut arguments": ([User(), Asks((Call("c", '{"a": 1'),)), Result("c")], ["arguments_not_json"]),
    "a list of arguments": (
        [User(), Asks((Call("c", "[]"),)), Result("c")],
        ["arguments_not_json"],
    ),
}


@every_protocol
@pytest.mark.parametrize("case", HOPELESS.values(), ids=HOPELESS)
def test_what_no_result_mends_is_named_and_left(case: tuple[Events, list[str]], name: str) -> None:
    broken = WRITE[name](case[0])
    assert kinds(broken) == case[1]
    assert repair(broken).document is broken


@pytest.mark.parametrize("twice", ['{"a": 1, "a": 2}', '{"a": 1e400}', '{"a": NaN}', "{} {}"])
def test_arguments_that_readers_read_differently_are_named(twice: str) -> None:
    for name in ("chat", "responses"):
        assert kinds(WRITE[name]([User(), Asks((Call("c", twice),)), Result("c")])) == [
            "arguments_not_json"
        ]


def test_the_vendors_differ_on_ids() -> None:
    again: list[Event] = [User(), ASKED, RESULT_A, Says(), User(), ASKED, RESULT_A]
    dotted: list[Event] = [User(), Asks((Call("functions.get:0"),)), Result("functions.get:0")]
    for name in ("chat", "responses"):
        assert kinds(WRITE[name](again)) == kinds(WRITE[name](dotted)) == []
    [found] = check(WRITE["messages"](again))
    assert (found.kind, found.vendors != "") == ("repeated_id", True)
    assert kinds(WRITE["messages"](dotted)) == ["id_characters"]


def test_results_spread_over_messages_are_brought_together() -> None:
    broken = WRITE["messages"]([User(), BOTH, RESULT_A, Split(), RESULT_B, User()])
    assert kinds(broken) == ["results_spread"]
    mended = repair(broken).document
    assert mended == WRITE["messages"]([User(), BOTH, RESULT_A, RESULT_B, User()])


def test_text_before_the_results_in_their_message_is_put_behind_them() -> None:
    broken = WRITE["messages"]([User(), ASKED, RESULT_A])
    broken[2]["content"].insert(0, {"type": "text", "text": "And now?"})
    assert kinds(broken) == ["text_between"]
    mended = repair(broken).document
    assert [block["type"] for block in mended[2]["content"]] == ["tool_result", "text"]
    assert kinds(mended) == []


def test_a_result_before_two_calls_of_its_id_is_given_to_none() -> None:
    for name in ("chat", "responses"):
        broken = WRITE[name]([User(), RESULT_A, ASKED, User(), ASKED, User()])
        assert kinds(broken) == ["orphan_result", "missing_result", "missing_result"]
        assert repair(broken).document == WRITE[name]([User(), ASKED, User(), ASKED, User()])


def test_an_item_id_is_no_call_id() -> None:
    broken = WRITE["responses"]([User(), BOTH, Result(f"fc_{A.id}", REAL[A.id]), RESULT_B])
    assert kinds(broken) == ["item_id_as_call_id"]
    assert repair(broken).document == WRITE["responses"]([User(), BOTH, RESULT_A, RESULT_B])


def test_a_call_id_is_no_item_id() -> None:
    broken = WRITE["responses"]([User(), ASKED, RESULT_A])
    broken[1]["id"] = A.id
    assert kinds(broken) == ["call_id_as_item_id"]


def test_a_response_may_wait_for_its_results_and_a_request_may_not() -> None:
    [asks] = WRITE["chat"]([BOTH])
    waiting: list[Raw] = [
        {
            "object": "chat.completion",
            "choices": [{"message": asks, "finish_reason": "tool_calls"}],
        },
        {"object": "response", "status": "completed", "output": WRITE["responses"]([BOTH])},
        {**WRITE["messages"]([BOTH])[0], "type": "message", "stop_reason": "tool_use"},
    ]
    for response in waiting:
        assert kinds(response) == []
        assert repair(response, REAL).document is response
    for name, write in WRITE.items():
        assert kinds(request(name, write([User(), BOTH]))) == ["missing_result"] * 2


def test_an_incomplete_response_is_named_wherever_it_says_so() -> None:
    [asks] = WRITE["chat"]([BOTH])
    cut: list[Any] = [
        {"choices": [{"message": asks, "finish_reason": "length"}]},
        {"status": "incomplete", "output": WRITE["responses"]([BOTH])},
        {**WRITE["messages"]([BOTH])[0], "type": "message", "stop_reason": "max_tokens"},
        [{"type": "message", "role": "assistant", "content": "Th", "status": "incomplete"}],
    ]
    for document in cut:
        assert kinds(document) == ["incomplete_response"]
        assert repair(document, REAL).document is document


def test_results_of_a_response_that_the_server_keeps_need_no_call_here() -> None:
    kept = {"previous_response_id": "resp_1", "input": WRITE["responses"]([RESULT_A, User()])}
    assert kinds(kept) == []
    assert kinds({"input": kept["input"]}) == ["orphan_result"]
    twice = {**kept, "input": WRITE["responses"]([RESULT_A, RESULT_A])}
    assert kinds(twice) == ["duplicate_result"]
    assert repair(twice).document == {**kept, "input": WRITE["responses"]([RESULT_A])}
    behind = {**kept, "input": WRITE["responses"]([RESULT_A, ASKED, RESULT_A, RESULT_B])}
    assert kinds(behind) == ["orphan_result"]


def test_a_result_behind_a_reference_to_its_call_stays() -> None:
    refers: Raw = {"type": "item_reference", "id": f"fc_{A.id}"}
    told = [*WRITE["responses"]([User()]), refers, *WRITE["responses"]([RESULT_A, User()])]
    assert kinds(told) == []
    assert repair(told).document is told
    assert kinds([told[0], told[2], told[1], told[3]]) == ["orphan_result"]


def test_a_call_that_never_ran_gets_an_error_that_says_so() -> None:
    for name, write in WRITE.items():
        repaired = repair(write([User(), BOTH, RESULT_A]), not_executed=[B.id])
        [told] = (
            [
                part
                for part in (repaired.document[-1], *repaired.document[-1].get("content", ())[1:])
                if B.id in part.values()
            ]
            if isinstance(repaired.document[-1].get("content"), list)
            else [repaired.document[-1]]
        )
        said = json.loads(told.get("output") or told["content"])
        assert said["error"]["kind"] == "not_executed"
        assert told.get("is_error", name != "messages")
        assert repaired.left == []


def test_what_holds_nothing_but_orphans_is_empty_when_they_are_out() -> None:
    for write in WRITE.values():
        repaired = repair(write([RESULT_A]))
        assert (repaired.document, repaired.left) == ([], [])


def test_an_id_that_names_two_calls_without_result_is_left() -> None:
    broken = WRITE["chat"]([User(), ASKED, User(), ASKED, User()])
    assert repair(broken, REAL).document is broken


def test_one_given_result_is_not_put_to_two_calls_of_its_id() -> None:
    broken = WRITE["chat"]([User(), ASKED, RESULT_A, Result(A.id, 8), User(), ASKED, User()])
    assert kinds(broken) == ["duplicate_result", "missing_result"]
    assert repair(broken, REAL).document is broken
    assert repair(broken, REAL).unused == [A.id, B.id]
    twins = WRITE["chat"]([User(), Asks((A, A)), User()])
    assert repair(twins, REAL, kept=lambda call: REAL[call.id]).document is twins


def test_calls_of_the_vendors_own_tools_are_paired_and_never_filled() -> None:
    shell: Raw = {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}
    told: Raw = {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]}
    assert kinds([shell, told]) == []
    assert kinds([shell]) == ["missing_result"]
    assert repair([shell], {"c": "a"}).document == [shell]
    assert [each.what for each in convert([told], "chat").lost] == ["shell_call_output"]
    beside: list[Raw] = [
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {}},
        {"type": "local_shell_call_output", "id": "c", "output": "a"},
        {"type": "tool_search_call", "call_id": None, "arguments": {}},
    ]
    assert kinds([*beside, {"role": "user", "content": "?"}]) == []


def test_what_is_not_touched_stays_the_very_same_and_the_given_is_never_changed() -> None:
    broken = WRITE["messages"]([User(), ASKED, RESULT_A, Says(), User(), Asks((B,)), User()])
    broken[0]["cache_control"] = {"type": "ephemeral"}
    before = deepcopy(broken)
    mended = repair(broken, REAL).document
    assert broken == before
    assert all(one is other for one, other in zip(mended[:6], broken[:6], strict=True))
    assert mended[7] is broken[6]


@pytest.mark.parametrize(
    "document",
    [None, 7, "text", {}, [], [1], {"messages": []}, {"messages": {}}, {"input": 3}, {"a": [{}]},
     [{}], [{"role": "user"}], [{"role": "nobody", "content": ""}],
     [{"role": "tool", "tool_call_id": 7, "content": ""}], [{"role": "user", "tool_calls": 3}],
     [{"role": "assistant", "tool_calls": [{"id": "a"}]}], [{"type": "function_call"}],
     [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]}],
     [{"role": "tool", "content": ""}, {"type": "message", "role": "user", "content": ""}],
     [{"type": "Feature"}], {"choices": [{"message": {"role": "user", "content": "?"}}]},
     {"input": [{"role": "user", "content": [
         {"type": "tool_result", "tool_use_id": "a", "content": "?"}]}]},
     {"messages": [{"role": "system", "content": [
         {"type": "tool_result", "tool_use_id": "a", "content": "?"}]}]},
     {"system": [{"type": "tool_result", "tool_use_id": "a", "content": "?"}],
      "messages": [{"role": "user", "content": "?"}]},
     {"choices": [{}]}, {"output": [None]},
     {"system": 3, "messages": [{"role": "user", "content": "?"}]},
     {"messages": [{"messages": [{"role": "user", "content": "?"}]}]}],
)  # fmt: skip
def test_what_is_no_history_is_refused_in_one_sentence(document: Any) -> None:
    for work in (check, repair, lambda given: convert(given, "chat")):
        with pytest.raises(NotHistory) as refused:
            work(document)
        assert str(refused.value).endswith(".")


# Properties.


def _valid(name: str, conversation: Events) -> None:
    assert check(WRITE[name](conversation)) == []
    document = request(name, WRITE[name](conversation))
    assert repair(document).document is document
    accepted(name, document)


@every_protocol
@SHORT
@given(conversation=conversations())
def test_a_valid_history_passes(name: str, conversation: Events) -> None:
    _valid(name, conversation)


@pytest.mark.long
@every_protocol
@LONG
@given(conversation=conversations())
def test_a_thousand_valid_histories_pass(name: str, conversation: Events) -> None:
    _valid(name, conversation)


@pytest.mark.parametrize("name", ["chat", "responses"])
@SHORT
@given(conversation=conversations(unique=False))
def test_ids_may_start_again_with_each_response(name: str, conversation: Events) -> None:
    assert check(WRITE[name](conversation)) == []


Mutation = Callable[[list[Event], int], list[Event]]


def _asking(events: Events, place: int) -> int:
    """Where the call of the result at `place` was made."""
    return next(n for n in range(place, -1, -1) if isinstance(events[n], Asks))


def _moved(events: list[Event], place: int, to: int) -> list[Event]:
    rest = events[:place] + events[place + 1 :]
    return [*rest[:to], events[place], *rest[to:]]


MUTATIONS: dict[str, tuple[Mutation, str]] = {
    "drop": (lambda e, n: e[:n] + e[n + 1 :], "missing_result"),
    "duplicate": (lambda e, n: e[: n + 1] + e[n:], "duplicate_result"),
    "repeat at the end": (lambda e, n: [*e, e[n], User()], "duplicate_result"),
    "rename": (lambda e, n: [*e[:n], Result("call.foreign", 0), *e[n + 1 :]], "mismatched_id"),
    "move before": (lambda e, n: _moved(e, n, _asking(e, n)), "result_before_call"),
    "move behind": (lambda e, n: [*_moved(e, n, len(e) - 1), User()], "text_between"),
    "swap with the response": (lambda e, n: _moved(e, _asking(e, n), n), "result_before_call"),
    "truncate before": (lambda e, n: [User(), *e[_asking(e, n) + 1 :]], "orphan_result"),
    "truncate behind": (lambda e, n: e[:n], "missing_result"),
    "interrupt": (lambda e, n: [*e[:n], User(), *e[n:]], "text_between"),
}


def _mutated(name: str, conversation: list[Event], mutation: str, data: st.DataObject) -> None:
    results = [n for n, event in enumerate(conversation) if isinstance(event, Result)]
    assume(results)
    mutate, kind = MUTATIONS[mutation]
    broken = mutate(conversation, data.draw(st.sampled_from(results)))
    document = request(name, WRITE[name](broken))
    found = kinds(document)
    assert found
    assert set(found) == {kind}
    repaired = repair(document, outputs(conversation))
    assert repaired.left == check(repaired.document) == []
    assert {each.kind for each in repaired.done} == {kind}
    accepted(name, repaired.document)
    assert repair(repaired.document).document is repaired.document


@every_protocol
@pytest.mark.parametrize("mutation", MUTATIONS)
@settings(SHORT, max_examples=12)
@given(conversation=conversations(), data=st.data())
def test_a_mutation_is_found_and_named_and_mended(
    name: str, mutation: str, conversation: list[Event], data: st.DataObject
) -> None:
    _mutated(name, conversation, mutation, data)


@pytest.mark.long
@every_protocol
@LONG
@given(conversation=conversations(), mutation=st.sampled_from(list(MUTATIONS)), data=st.data())
def test_a_thousand_mutations_are_found_and_named_and_mended(
    name: str, conversation: list[Event], mutation: str, data: st.DataObject
) -> None:
    _mutated(name, conversation, mutation, data)


@every_protocol
@SHORT
@given(conversation=conversations())
def test_a_cut_at_every_length_leaves_orphans_that_are_taken_out(
    name: str, conversation: list[Event]
) -> None:
    listed = WRITE[name](conversation)
    for length in range(1, len(listed) + 1):
        kept = [{"role": "user", "content": "And?"}, *listed[-length:]]
        assert set(kinds(kept)) <= {"orphan_result"}
        repaired = repair(kept)
        assert repaired.left == []
        accepted(name, request(name, repaired.document))


def _work(number: int) -> int:
    """How many functions are called to check so many messages, of which none is right."""
    turns = ((User(), Asks((Call(f"c{n}"),)), Result("x")) for n in range(number // 4))
    events: list[Event] = [event for turn in turns for event in turn]
    events += [Result(f"c{n}") for n in range(number // 4)]
    events += [Asks(tuple(Call(id_) for id_ in ("same", "other") for _ in range(number // 4)))]
    document = WRITE["chat"]([*events, *(Result(f"x{n}") for n in range(number // 4))])
    called = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        check(document)
    finally:
        sys.setprofile(None)
    return called


def test_twice_the_messages_are_twice_the_work() -> None:
    assert _work(4000) < 2.1 * _work(2000)
