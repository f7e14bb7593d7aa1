"""The last look at a history before it leaves (promise P3), and the window that it is cut to."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages

from agent import history as doctor
from agent.history.langchain import BrokenHistory, check
from agent.window import last_said, usable
from tests.strategies import SHORT


def _asking(*ids: str) -> AIMessage:
    return AIMessage(
        "", tool_calls=[{"type": "tool_call", "id": id_, "name": "t", "args": {}} for id_ in ids]
    )


def _result(id_: str) -> ToolMessage:
    return ToolMessage("{}", tool_call_id=id_)


@st.composite
def rounds(draw: st.DrawFn) -> list[AnyMessage]:
    """A response with calls and their results; ids repeat between rounds."""
    ids = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    return [_asking(*ids), *(_result(id_) for id_ in ids)]


@st.composite
def histories(draw: st.DrawFn) -> list[AnyMessage]:
    """A whole conversation that ends with the customer's words or with results."""
    history: list[AnyMessage] = []
    for _ in range(draw(st.integers(0, 5))):
        history += [HumanMessage("?")] * draw(st.integers(1, 2))
        for each in draw(st.lists(rounds(), max_size=3)):
            history += each
        history.append(AIMessage("!"))
    history.append(HumanMessage("?"))
    for each in draw(st.lists(rounds(), max_size=2)):
        history += each
    return [m.model_copy(update={"id": str(place)}) for place, m in enumerate(history)]


@SHORT
@given(history=histories())
def test_a_whole_history_passes(history: list[AnyMessage]) -> None:
    check(history)


def _results(history: Sequence[AnyMessage]) -> list[int]:
    return [place for place, m in enumerate(history) if isinstance(m, ToolMessage)]


@SHORT
@given(history=histories().filter(_results), data=st.data())
def test_a_missing_repeated_foreign_or_misplaced_result_is_found(
    history: list[AnyMessage], data: st.DataObject
) -> None:
    place = data.draw(st.sampled_from(_results(history)))
    message = history[place]
    without = [*history[:place], *history[place + 1 :]]
    broken = {
        "missing": without,
        "repeated": [*history[: place + 1], message, *history[place + 1 :]],
        "foreign": [*history[:place], _result("z"), *history[place + 1 :]],
        "first": [message, *without],
        "behind words": [*without, HumanMessage("?"), message],
    }
    for each in broken.values():
        with pytest.raises(BrokenHistory):
            check(each)


BROKEN: dict[str, list[AnyMessage]] = {
    "nothing": [],
    "no customer": [AIMessage("!")],
    "only a result": [_result("a")],
    "another order": [HumanMessage("?"), _asking("a", "b"), _result("b"), _result("a")],
    "one of two": [HumanMessage("?"), _asking("a", "b"), _result("a")],
    "words between": [
        HumanMessage("?"), _asking("a", "b"), _result("a"), HumanMessage("?"), _result("b"),
    ],
    "one id for two calls": [HumanMessage("?"), _asking("a", "a"), _result("a"), _result("a")],
    "an empty id": [HumanMessage("?"), _asking(""), _result("")],
    "a result of an earlier round": [
        HumanMessage("?"), _asking("a"), _result("a"), _asking("b"), _result("a"),
    ],
    "calls without results, then words": [HumanMessage("?"), _asking("a"), AIMessage("!")],
}  # fmt: skip


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
def test_a_broken_history_is_refused(history: list[AnyMessage]) -> None:
    with pytest.raises(BrokenHistory):
        check(history)


@SHORT
@given(history=histories(), turns=st.integers(1, 8))
def test_a_window_is_whole_at_every_length_and_keeps_the_question(
    history: list[AnyMessage], turns: int
) -> None:
    kept = usable(history, turns)
    assert kept == history[len(history) - len(kept) :]
    check(kept)
    assert last_said(kept) == last_said(history)
    starts = [
        1
        for before, message in zip([None, *kept], kept, strict=False)
        if isinstance(message, HumanMessage) and not isinstance(before, HumanMessage)
    ]
    assert len(starts) <= turns
    assert kept == history or len(starts) == (turns // 2 or 1)


@SHORT
@given(history=histories(), turns=st.integers(1, 8))
def test_a_window_is_valid_on_the_wire_in_all_protocols(
    history: list[AnyMessage], turns: int
) -> None:
    sent: Any = convert_to_openai_messages(usable(history, turns))
    assert doctor.check(sent) == []
    for protocol in ("responses", "messages"):
        found = doctor.check(doctor.convert(sent, protocol).document)
        assert {each.kind for each in found} <= {"repeated_id"}  # which the wire tells apart


def test_what_stands_before_the_first_question_is_left_out() -> None:
    history: list[AnyMessage] = [_result("a"), AIMessage("!"), HumanMessage("?")]
    assert usable(history) == history[2:]
