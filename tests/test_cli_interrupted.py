"""Commands that are stopped in the middle, that lose their reader, or that begin at once."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import COMMAND, environment, finish, here, start, thread_of
from tests.demo_data import ORDERS, check_only
from tests.responses_server import ResponsesServer, good, held, serving

TWO = "Where are order A-18 and order B-21?"
SECONDS = 30


@contextmanager
def _asking(
    *arguments: str, round: int
) -> Iterator[tuple[ResponsesServer, subprocess.Popen[bytes]]]:
    """A process that waits for the given response of its model."""
    with serving(*[good] * (round - 1), held) as server:
        process = start("ask", TWO, *arguments, **server.variables())
        try:
            assert server.asked.wait(SECONDS), "the model was never asked"
            yield server, process
        finally:
            process.kill()
            process.communicate()


def _thread() -> str:
    return str(here("ask", "Where is order A-17?", "--json").json["thread_id"])


def _goes_on(thread: str) -> None:
    """The next question is answered, with its own calls only and on a history without gaps."""
    with serving() as server:
        turn = here("ask", "Where is order B?", "--thread", thread, "--json", **server.variables())
        sent = server.requests[0].body["input"]
    assert turn.code == 0, turn
    assert [call["subject"] for call in turn.json["calls"]] == ["B"]
    check_only(turn.json["message"], "B")
    asked = [item["call_id"] for item in sent if item.get("type") == "function_call"]
    told = [item["call_id"] for item in sent if item.get("type") == "function_call_output"]
    assert asked == told


@pytest.mark.parametrize(
    "round", [pytest.param(1, marks=pytest.mark.long), 2], ids=["no call yet", "after two calls"]
)
def test_ctrl_c_in_a_turn_stops_it_and_the_thread_goes_on(round: int) -> None:
    thread = _thread()
    with _asking("--thread", thread, "--json", round=round) as (_, process):
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert done.code == 130
    assert done.out == ""
    assert "Stopped." in done.err
    assert "Traceback" not in done.err
    _goes_on(thread)


def test_who_stops_a_first_question_has_been_told_its_thread() -> None:
    with _asking(round=2) as (_, process):
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert done.code == 130
    _goes_on(thread_of(done))


@pytest.mark.parametrize(
    "round", [pytest.param(1, marks=pytest.mark.long), 2], ids=["no call yet", "after two calls"]
)
def test_a_process_that_is_killed_in_a_turn_leaves_a_thread_that_goes_on(round: int) -> None:
    thread = _thread()
    with _asking("--thread", thread, round=round) as (_, process):
        process.kill()
        assert finish(process).code == -signal.SIGKILL
    _goes_on(thread)


def test_ctrl_c_at_the_prompt_ends_a_conversation_at_once() -> None:
    process = start("chat")
    assert process.stderr is not None
    try:
        said = b""
        while b"you:" not in said:
            piece = os.read(process.stderr.fileno(), 4096)
            assert piece, said
            said += piece
        time.sleep(0.3)  # the prompt is written just before the line is waited for
        process.send_signal(signal.SIGINT)
        code = process.wait(5)
    finally:
        process.kill()
        _, rest = process.communicate()
    assert code in (0, 130)
    assert b"Traceback" not in rest


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask", "Where is order A-18?"],
        pytest.param(["ask", "Where is order A-18?", "--json"], marks=pytest.mark.long),
        ["orders", "list"],
        ["orders", "list", "--json"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_a_reader_that_is_gone_is_no_reason_for_a_traceback(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    _, err = process.communicate(timeout=SECONDS)
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err
    assert b"Exception" not in err
    assert process.returncode in (0, 1, -signal.SIGPIPE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask", "Where is order Ж-41?", "--customer", "C-1007"],
        pytest.param(["orders", "list"], marks=pytest.mark.long),
    ],
    ids=["ask", "orders list"],
)
def test_an_output_that_cannot_hold_every_letter_still_gets_the_answer(
    arguments: list[str],
) -> None:
    process = start(*arguments, PYTHONIOENCODING="ascii")
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert b"Something unexpected" not in err
    assert b"-41" in out


def test_two_processes_that_begin_a_shop_at_once_both_answer() -> None:
    processes = [start("ask", TWO), start("ask", TWO)]
    for process in processes:
        done = finish(process)
        assert done.code == 0, done
        check_only(done.out, "A-18", "B-21")
    assert len(here("orders", "list", "--json").json) == len(ORDERS)


@pytest.mark.long
@pytest.mark.parametrize("attempt", range(3))
def test_many_processes_that_begin_a_shop_at_once_all_answer(attempt: int) -> None:
    listing = [start("orders", "list", "--json") for _ in range(6)]
    asking = [start("ask", TWO) for _ in range(4)]
    assert {len(finish(process).json) for process in listing} == {len(ORDERS)}
    for process in asking:
        check_only(finish(process).out, "A-18", "B-21")


@pytest.mark.long
def test_a_first_use_that_is_killed_at_any_moment_leaves_a_shop_or_none() -> None:
    for place, seconds in enumerate([0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8]):
        url = f"sqlite:///{place}.db"
        process = start("orders", "list", SUPPORT_DATABASE_URL=url)
        time.sleep(seconds)
        process.kill()
        finish(process)
        listed = here("orders", "list", "--json", SUPPORT_DATABASE_URL=url)
        assert len(listed.json) == len(ORDERS), f"killed after {seconds} s"


@pytest.mark.long
def test_an_import_that_is_killed_at_any_moment_writes_all_or_nothing() -> None:
    header = "order_id,customer_id,status,placed_on,total,currency,sku,item,quantity,price"
    rows = [f"N-{n},N-9,pending,2026-11-14,1.00,EUR,S,Cup,1,1.00" for n in range(5_000)]
    Path("many.csv").write_text("\n".join([header, *rows]))
    here("orders", "list")
    for tenths in range(4, 24, 2):
        process = start("orders", "import", "many.csv")
        time.sleep(tenths / 10)
        process.kill()
        finish(process)
        found = len(here("orders", "list", "--json").json)
        assert found in (len(ORDERS), len(ORDERS) + len(rows)), f"killed after {tenths / 10} s"
