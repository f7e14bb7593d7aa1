"""Confirmations on the command line: asked, answered call by call, once."""

import json
import shlex
from typing import Any

import pytest

from tests.commands import Done, here, refused, thread_of

pytestmark = [pytest.mark.on_both("long"), pytest.mark.usefixtures("commands_on")]

BOTH = "Please cancel order A-17 and refund 10 USD of order B, it arrived broken."


def _asked(text: str = BOTH, **variables: str) -> tuple[str, dict[str, str], Any]:
    """The thread, the pending calls by tool, and what `--json` prints."""
    done = here("ask", text, "--json", **variables)
    assert done.code == 3, done
    pending = {each["tool"]: each["call_id"] for each in done.json["confirmations"]}
    return thread_of(done), pending, done.json


def _decide(thread: str, *options: str, **variables: str) -> Done:
    return here("decide", "--thread", thread, *options, "--json", **variables)


def _effects() -> dict[str, str]:
    """What the shop says: the state of A-17, and what was refunded for B."""
    orders = {each["order_id"]: each for each in here("orders", "list", "--json").json}
    audit = here("audit", "--order", "B", "--json").json
    return {"A-17": orders["A-17"]["status"], "B": [e["event"] for e in audit].count("done") * "10"}


def test_what_waits_is_printed_with_all_that_an_answer_needs() -> None:
    _, pending, turn = _asked()
    assert turn["status"] == "awaiting_confirmation"
    assert turn["message"].splitlines() == ["Cancel order A-17?", "Refund $10.00 for order B?"]
    keys = {"interrupt_id", "call_id", "tool", "subject", "arguments", "digest"}
    assert [set(each) for each in turn["confirmations"]] == [keys, keys]
    assert [each["subject"] for each in turn["confirmations"]] == ["A-17", "B"]
    calls = {call["call_id"]: call for call in turn["calls"]}
    for id_ in pending.values():
        assert (calls[id_]["status"], calls[id_]["output"]) == ("pending", None)
        assert calls[id_]["finished_at"] is None
        assert calls[id_]["subject"] in ("A-17", "B")
    assert _effects() == {"A-17": "confirmed", "B": ""}


def test_what_waits_is_printed_with_the_command_that_answers_it() -> None:
    done = here("ask", "Please cancel order A-17.", "--customer", "C-1001")
    [line] = [line for line in done.err.splitlines() if line.startswith("answer with:")]
    _, decide, *options = shlex.split(line.removeprefix("answer with:").partition("(")[0])
    assert here(decide, *options).code == 0
    assert _effects()["A-17"] == "cancelled"


@pytest.mark.parametrize("yes", ["cancel_order", "request_refund"])
def test_one_is_confirmed_and_the_other_rejected_in_one_command(yes: str) -> None:
    thread, pending, _ = _asked()
    [no] = pending.keys() - {yes}
    options = ("--reject", pending[no], "--reason", "not needed", "--confirm", pending[yes])
    done = _decide(thread, *options)
    assert (done.code, done.json["status"]) == (0, "answered")
    told = {call["tool"]: call for call in done.json["calls"]}
    assert told[yes]["status"] == "ok"
    assert told[no]["error"]["kind"] == "rejected"
    assert "not needed" in told[no]["error"]["message"]
    cancelled = yes == "cancel_order"
    assert _effects() == {
        "A-17": "cancelled" if cancelled else "confirmed",
        "B": "" if cancelled else "10",
    }


def test_one_is_confirmed_and_the_other_still_waits() -> None:
    thread, pending, _ = _asked()
    done = _decide(thread, "--confirm", pending["cancel_order"])
    assert (done.code, done.json["status"]) == (3, "awaiting_confirmation")
    assert [each["tool"] for each in done.json["confirmations"]] == ["request_refund"]
    assert _effects() == {"A-17": "cancelled", "B": ""}
    done = _decide(thread, "--confirm", pending["request_refund"])
    assert (done.code, done.json["confirmations"]) == (0, [])
    assert _effects() == {"A-17": "cancelled", "B": "10"}


def test_a_decision_counts_once() -> None:
    thread, pending, _ = _asked()
    both = [option for id_ in pending.values() for option in ("--confirm", id_)]
    assert _decide(thread, *both).code == 0
    refused(_decide(thread, *both), "Nothing waits", "Nothing was done by this")
    assert _effects() == {"A-17": "cancelled", "B": "10"}


def test_what_does_not_count_changes_nothing_and_leaves_what_waits() -> None:
    thread, pending, _ = _asked()
    one, two = pending.values()
    wrong = {
        "no option": [],
        "an unknown call": ["--confirm", "call_0"],
        "a call and an unknown one": ["--confirm", one, "--confirm", "call_0"],
        "twice": ["--confirm", one, "--confirm", one],
        "both ways": ["--confirm", one, "--reject", one],
        "a reason before anything": ["--reason", "why", "--reject", two],
        "a reason for a yes": ["--confirm", one, "--reason", "why"],
    }
    for options in wrong.values():
        refused(_decide(thread, *options))
    refused(_decide(thread, "--confirm", two, "--reject", two), two, "decided twice")
    refused(_decide(thread, "--confirm", one, "--customer", "C-1002"), "no such thread")
    refused(_decide("t-000000000000", "--confirm", one), "no such thread")
    assert _effects() == {"A-17": "confirmed", "B": ""}
    assert _decide(thread, "--confirm", one, "--reject", two).code == 0


def test_a_new_question_withdraws_what_waits() -> None:
    thread, pending, _ = _asked()
    done = here("ask", "hello?", "--thread", thread, "--json")
    assert done.code == 0
    assert done.json["message"].count("withdrawn") == 2
    refused(_decide(thread, "--confirm", pending["cancel_order"]), "Nothing waits")
    assert _effects() == {"A-17": "confirmed", "B": ""}


def test_in_a_conversation_yes_and_no_answer_in_turn() -> None:
    done = here("chat", stdin=f"{BOTH}\nyes\nno\n")
    assert done.code == 0
    assert "Cancellation of order A-17: done." in done.out
    assert "You did not confirm it" in done.out
    assert _effects() == {"A-17": "cancelled", "B": ""}


@pytest.mark.parametrize(
    ("text", "answer", "said"),
    [
        ("Отмените, пожалуйста, заказ A-17.", "да", "A-17"),
        ("请取消订单A-17。", "是", "A-17"),
        ("Cancela el pedido A-17, por favor.", "sí", "A-17"),
    ],
)
def test_a_conversation_is_confirmed_in_the_customers_language(
    text: str, answer: str, said: str
) -> None:
    done = here("chat", stdin=f"{text}\n{answer}\n")
    assert (done.code, said in done.out) == (0, True)
    assert _effects()["A-17"] == "cancelled"


def test_in_a_conversation_anything_else_is_a_message_and_withdraws() -> None:
    done = here("chat", stdin=f"{BOTH}\nyes, but where is order A?\n")
    assert done.code == 0
    assert done.out.count("withdrawn") == 2
    assert _effects() == {"A-17": "confirmed", "B": ""}


def test_a_conversation_goes_on_with_what_waits_in_its_thread() -> None:
    thread, _, _ = _asked("Please cancel order A-17.")
    done = here("chat", "--thread", thread, stdin="yes\n")
    assert "Cancellation of order A-17: done." in done.out
    assert "Cancel order A-17? (yes/no)" in done.err


def test_a_large_refund_waits_for_staff_and_the_next_turn_tells_of_it() -> None:
    thread, pending, _ = _asked("Please refund 120 EUR of order A-18.")
    done = _decide(thread, "--confirm", pending["request_refund"])
    assert done.code == 0
    [call] = [call for call in done.json["calls"] if call["tool"] == "request_refund"]
    assert call["error"]["kind"] == "awaiting_approval"
    [waiting] = here("approvals", "list", "--json").json
    assert here("approvals", "approve", waiting["key"], "--as", "sam").code == 0
    later = here("ask", "hello?", "--thread", thread, "--json").json
    assert "Refund of €120.00 for order A-18: done." in later["message"]
    told = here("audit", "--thread", thread, "--json").json
    assert [(each["event"], each["by"]) for each in told] == [
        ("confirmed", "C-1001"),
        ("waiting", "C-1001"),
        ("claimed", "sam"),
        ("done", ""),
    ]


def test_a_thread_with_a_person_is_silent_and_its_exit_code_is_zero() -> None:
    done = here("ask", "I want to talk to a person, please.", "--json")
    assert (done.code, done.json["status"]) == (0, "with_person")
    assert "A member of our staff" in done.json["message"]
    thread = thread_of(done)
    silent = here("ask", "Hello?", "--thread", thread, "--json")
    assert (silent.code, silent.json["status"], silent.json["message"]) == (0, "with_person", "")
    assert here("threads", "give-back", thread, "--as", "sam", "--note", "Called her.").code == 0
    back = here("ask", "Where is A-18?", "--thread", thread, "--json").json
    assert back["status"] == "answered"
    assert "A-18" in back["message"]


def test_what_waits_is_json_that_can_be_read_back() -> None:
    _, _, turn = _asked()
    assert json.loads(json.dumps(turn)) == turn
