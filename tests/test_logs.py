"""Logs for programs: a line of JSON an event."""

import json
import logging

from agent.logs import Lines
from tests import commands, vendors
from tests.fault_server import delivery, says, serving, status, whole

CALL = delivery("call_a", "A-17")


def lines(done: commands.Done) -> list[dict[str, str]]:
    return [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]


def test_ways_in_which_a_model_fails_are_told_apart() -> None:
    """It broke off and was asked again; its server refused; it asked for what nobody can tell."""
    broken = whole(says(CALL), until="arguments")
    twice = whole(says(CALL, CALL))
    with serving(broken, twice, status(400)) as server:
        variables = {
            "SUPPORT_MODEL": "openai:m",
            "SUPPORT_OPENAI_API": "chat",
            "OPENAI_API_KEY": vendors.KEY,
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
        }
        done = commands.run("ask", "Is A-17 there, asks Marlowe?", SUPPORT_LOG="info", **variables)
    told = lines(done)
    kinds = [line["event"].partition(":")[0] for line in told]
    assert kinds == ["stream_interrupted", "ambiguous_calls", "model_unavailable", "turn 1"]
    assert [line["logger"] for line in told] == ["agent.asking"] * 3 + ["agent.accounts"]
    assert "Marlowe" not in json.dumps(told)


def test_a_turn_that_went_well_is_one_line() -> None:
    done = commands.run("ask", "Is A-17 there, asks Marlowe?", SUPPORT_LOG="info")
    (told,) = lines(done)
    assert told["event"].startswith("turn 1: answered; rounds: 2, calls: 1, input tokens: ")
    assert "Marlowe" not in json.dumps(told)


def test_an_event_is_one_line_and_an_error_only_its_kind() -> None:
    error = (ValueError, ValueError("Marlowe"), None)
    line = Lines().format(logging.LogRecord("agent.x", 20, "", 0, "a\nb", None, error))
    assert "\n" not in line
    assert json.loads(line)["error"] == "ValueError"
    assert "Marlowe" not in line


def test_nothing_is_logged_as_json_unless_it_is_asked_for() -> None:
    assert not lines(commands.run("ask", "Is A-17 there?"))
