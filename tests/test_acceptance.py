"""The acceptance report: one turn from its calls to its answer, as it was kept."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from agent import tables
from agent.ledger import Ledger
from offline_model.conversation import Asked, Step
from tests.commands import Done, here, refused
from tests.offices import on_ledger, overwrite, table
from tests.responses_server import serving

pytestmark = [pytest.mark.on_both("long"), pytest.mark.usefixtures("commands_on")]

THREE = "Where are A-17, B-21 and nope-99?"
DELIVERY = "{order_id}: {status} {parcels}"


def _asked(text: str, **variables: str) -> tuple[str, Any]:
    turn = here("ask", text, "--json", **variables).json
    return turn["thread_id"], turn


def _scripted(*rounds: Step | tuple[Asked, ...]) -> str:
    """The thread of a turn in which the model makes these calls, a round each, then its cards."""
    with serving() as server:
        server.script(*(Step(each) if isinstance(each, tuple) else each for each in rounds))
        return _asked("How are my orders?", **server.variables())[0]


def _draft(*cards: tuple[str, str]) -> Step:
    told = [{"call_id": id_, "text": text} for id_, text in cards]
    draft = {"locale": "en", "opening": "", "cards": told, "closing": ""}
    return Step(text=json.dumps(draft))


def _audit(thread: str, turn: int = 1, *options: str) -> Done:
    return here("audit", "--thread", thread, "--turn", str(turn), *options)


def _report(thread: str, *names: str, code: int = 0) -> tuple[list[Any], Any]:
    """These fields of each call, and the totals."""
    done = _audit(thread, 1, "--json")
    assert done.code == code, done
    return [tuple(row[name] for name in names) for row in done.json["calls"]], done.json["totals"]


def test_reads_are_followed_from_the_call_to_the_card() -> None:
    thread, turn = _asked(THREE)
    rows, totals = _report(thread, "call_id", "subject", "valid", "status", "returned", "card")
    told = [
        ("A-17", True, "ok", "yes", "card 1"),
        ("B-21", True, "ok", "yes", "card 2"),
        ("NOPE-99", True, "not_found", "yes", "default card 3"),
    ]
    calls = turn["calls"]
    assert rows == [(c["call_id"], *row) for c, row in zip(calls, told, strict=True)]
    assert totals == {
        "calls": 3,
        "one_to_one": True,
        "cards": 3,
        "rounds": turn["rounds"],
        "answer": "answered",
        "tokens": turn["usage"],
        "cost_usd": None,
    }
    times, _ = _report(thread, "started_at", "finished_at")
    assert times == [(call["started_at"], call["finished_at"]) for call in calls]


def test_the_report_is_a_line_a_call_and_one_of_totals() -> None:
    thread, turn = _asked(THREE)
    used = turn["usage"]
    *lines, last = _audit(thread).out.splitlines()
    assert [line.split()[2] for line in lines] == [call["call_id"] for call in turn["calls"]]
    assert all("  returned: yes  " in line for line in lines)
    assert lines[-1].endswith("default card 3")
    assert last == (
        "calls: 3; results one to one: yes; cards: 3; rounds: 2; answer: answered;"
        f" tokens: {used['input_tokens']} in, {used['output_tokens']} out; cost_usd: unknown"
    )


def test_a_write_is_shown_with_its_record_and_with_who_decided() -> None:
    thread, turn = _asked("Please cancel order A-17 and refund 10 USD of order B, it broke.")
    yes, no = (each["call_id"] for each in turn["confirmations"])
    here("decide", "--thread", thread, "--confirm", yes, "--reject", no)
    rows, _ = _report(thread, "call_id", "status", "ledger", "decided", "card")
    assert rows == [
        (yes, "ok", "done", ["confirmed by C-1001"], "default card 1"),
        (no, "rejected", "no record", ["rejected by C-1001"], "default card 2"),
    ]


@pytest.mark.parametrize(("decision", "state"), [("approve", "done"), ("reject", "refused")])
def test_who_of_the_staff_decided_is_shown(decision: str, state: str) -> None:
    thread, turn = _asked("Please refund 120 EUR of order A-18.")
    here("decide", "--thread", thread, "--confirm", turn["confirmations"][0]["call_id"])
    names = ("status", "seconds", "ledger", "decided")
    confirmed = "confirmed by C-1001"
    rows, _ = _report(thread, *names)
    assert rows[-1] == ("awaiting_approval", None, "waiting", [confirmed])
    [waits] = here("approvals", "list", "--json").json
    here("approvals", decision, waits["key"], "--as", "sam")
    rows, _ = _report(thread, *names)
    by = {"approve": "approved", "reject": "refused"}[decision]
    assert rows[-1] == ("awaiting_approval", None, state, [confirmed, f"{by} by sam"])


def test_an_id_that_comes_again_in_a_later_round_is_another_call() -> None:
    thread = _scripted(
        *((Asked("get_delivery", {"order_id": order}, "call_0"),) for order in ("A-17", "B-21")),
        _draft(("call_0", DELIVERY)),
    )
    rows, totals = _report(thread, "round", "call_id", "subject", "returned", "card")
    assert rows == [
        (1, "call_0", "A-17", "yes", "default card 2"),
        (2, "call_0", "B-21", "yes", "card 1"),
    ]
    assert (totals["one_to_one"], totals["rounds"]) == (True, 3)


def test_a_result_without_a_card_says_why() -> None:
    thread = _scripted(
        (
            Asked("list_orders", {}, "call_list"),
            Asked("get_delivery", {"order_id": "A-17"}, "call_1"),
            Asked("get_delivery", {"order": "B-21"}, "call_2"),
        ),
        (
            Asked("get_delivery", {"order_id": " a-17"}, "call_3"),
            Asked("get_delivery", {"order_id": "B-21"}, "call_4"),
        ),
        _draft(("call_3", DELIVERY)),
    )
    rows, _ = _report(thread, "call_id", "valid", "card")
    assert rows == [
        ("call_list", True, "not mentioned: optional"),
        ("call_1", True, "not mentioned: a later call tells it"),
        ("call_2", False, "not mentioned: a later call tells it"),
        ("call_3", True, "card 1"),
        ("call_4", True, "default card 2"),
    ]


def test_a_call_that_was_never_made_has_no_times_and_nobody_checked_it() -> None:
    thread, _ = _asked(THREE, SUPPORT_MAX_CALLS="2")
    rows, _ = _report(thread, "status", "valid", "started_at", "seconds")
    assert rows[2] == ("not_executed", None, None, None)


def test_what_was_done_and_not_returned_yet_is_a_call_without_a_result() -> None:
    thread, turn = _asked("Please cancel order A-17 and refund 10 USD of order B, it broke.")
    assert _report(thread, code=1)[0] == []
    yes, _ = (each["call_id"] for each in turn["confirmations"])
    here("decide", "--thread", thread, "--confirm", yes)
    rows, totals = _report(thread, "call_id", "returned", "ledger", "decided", "card", code=1)
    decided = ["confirmed by C-1001"]
    assert rows == [(yes, "no result", "done", decided, "not mentioned")]
    assert (totals["one_to_one"], totals["answer"]) == (False, None)
    done = _audit(thread)
    assert "  no run on record  " in done.out
    assert "has no answer" in done.err


def _renamed(first: Any, second: Any) -> Any:
    return {**first, "call_id": second["call_id"]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda first, second: None, ["no result", "yes"]),
        (_renamed, ["under another call: get_delivery {1}", "2 results"]),
        (
            lambda first, second: {**first, "call_id": "call_x"},
            ["under another call: get_delivery call_x", "yes"],
        ),
    ],
)
def test_results_that_are_not_one_to_one_exit_with_1(
    change: Callable[[Any, Any], Any], said: list[str]
) -> None:
    thread, _ = _asked("Where are A-17 and B-21?")
    first, second = table(tables.calls, "place")
    ids = [first["call_id"], second["call_id"]]

    async def work(ledger: Ledger) -> None:
        result = change(first["result"], second["result"])
        changed = update(tables.calls).where(tables.calls.c.place == 0).values(result=result)
        async with ledger.database.begin() as db:
            await db.execute(changed)

    on_ledger(work)
    rows, totals = _report(thread, "returned", code=1)
    assert [row[0] for row in rows] == [each.format(*ids) for each in said]
    assert totals["one_to_one"] is False
    assert "results one to one: no" in _audit(thread).out


def test_a_write_that_the_ledger_does_not_know_is_said_to_have_no_record() -> None:
    thread, turn = _asked("Please cancel order A-17.")
    here("decide", "--thread", thread, "--confirm", turn["confirmations"][0]["call_id"])
    overwrite(tables.actions, key="another", call="")
    assert _report(thread, "status", "ledger")[0][-1] == ("ok", "no record")


def test_a_turn_without_calls_is_accepted() -> None:
    thread, _ = _asked("Hello!")
    assert _audit(thread).out.startswith("calls: 0; results one to one: yes; cards: 0; rounds: 1;")


def test_a_turn_that_there_is_not_is_said_to_be_none() -> None:
    thread, _ = _asked("Hello!")
    refused(_audit(thread, 2), "There is no turn 2")
    refused(_audit("t-nobody"), "There is no turn 1", "t-nobody")


@pytest.mark.parametrize(
    "options",
    [
        ["--turn", "1"],
        ["--turn", "1", "--thread", "t", "--order", "A"],
        *(["--thread", "t", "--turn", wrong] for wrong in ("0", "-1", "x", "9" * 30)),
    ],
)
def test_a_turn_is_named_by_its_number_in_one_thread(options: list[str]) -> None:
    refused(here("audit", *options), "--turn")
