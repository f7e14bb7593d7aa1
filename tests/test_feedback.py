"""Feedback lands on the root run of the turn that it is about."""

from collections.abc import Iterator

import pytest

from tests import commands
from tests.ingest import Ingest, ingest

QUESTION = "When does A-17 arrive?"


@pytest.fixture
def server() -> Iterator[Ingest]:
    with ingest() as here:
        yield here


def give(server: Ingest, turn: commands.Done, *more: str, **variables: str) -> commands.Done:
    named = ("--thread", turn.json["thread_id"], "--turn", str(turn.json["turn"]))
    return server.run("feedback", *named, *more, **variables)


def test_it_lands_on_the_root_run(server: Ingest) -> None:
    turn = server.run("ask", QUESTION, "--json")
    done = give(server, turn, "--score", "down")
    assert done.code == 0, done.err
    [noted] = server.feedback
    assert (noted["run_id"], noted["score"]) == (turn.json["trace_id"], 0)
    assert noted["run_id"] == server.roots[0]["id"]


def test_a_comment_needs_the_setting_that_allows_words(server: Ingest) -> None:
    turn = server.run("ask", QUESTION, "--json")
    said = ("--score", "up", "--comment", "Thanks, says Marlowe Quint")
    refused = give(server, turn, *said)
    commands.refused(refused, "SUPPORT_TRACE_CONTENT", "Nothing was sent")
    assert not server.feedback

    assert give(server, turn, *said, SUPPORT_TRACE_CONTENT="true").code == 0
    assert [noted["comment"] for noted in server.feedback] == [said[-1]]


def test_a_turn_that_was_not_traced_has_nowhere_to_note_it(server: Ingest) -> None:
    turn = commands.here("ask", QUESTION, "--json")
    commands.refused(give(server, turn, "--score", "up"), "No trace", "Nothing was sent")


def test_a_turn_beyond_what_a_database_counts_is_wrong_usage(server: Ingest) -> None:
    options = ("--thread", "t-1", "--turn", str(2**63), "--score", "up")
    commands.refused(server.run("feedback", *options), "--turn")


def test_what_langsmith_does_not_take_is_said(server: Ingest) -> None:
    turn = server.run("ask", QUESTION, "--json")
    server.answer = (500, {})
    refused = give(server, turn, "--score", "up")
    commands.refused(refused, "LangSmith did not take it", "try again", code=4)


def test_a_turn_that_no_database_can_number_is_wrong_usage(server: Ingest) -> None:
    done = server.run("feedback", "--thread", "t", "--turn", "9" * 20, "--score", "up")
    commands.refused(done, "--turn")
