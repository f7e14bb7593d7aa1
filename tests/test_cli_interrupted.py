"""Commands that are stopped in the middle, that lose their reader, or that begin at once."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import COMMAND, Done, environment, finish, here, run, start, thread_of
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


@pytest.mark.parametrize(
    "command",
    [["ask", TWO], ["chat"], pytest.param(["check-model"], marks=pytest.mark.long)],
    ids=" ".join,
)
def test_sigterm_stops_a_command_as_ctrl_c_does(command: list[str]) -> None:
    with serving(held) as server:
        process = start(*command, **server.variables())
        assert process.stdin is not None
        process.stdin.write(f"{TWO}\n".encode())
        process.stdin.flush()
        assert server.asked.wait(SECONDS), "the model was never asked"
        process.send_signal(signal.SIGTERM)
        done = finish(process)
    assert (done.code, done.out) == (143, "")
    assert done.err.endswith("Stopped. Nothing more was done.\n")


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
    ("arguments", "encoding"),
    [
        (["ask", "Where is order Ж-41?", "--customer", "C-1007"], "ascii"),
        (["ask", "Where is order Ж-41?", "--customer", "C-1007", "--json"], "latin-1"),
        pytest.param(["orders", "list"], "latin-1", marks=pytest.mark.long),
    ],
    ids=["ask", "ask --json", "orders list"],
)
def test_no_letter_is_lost_whatever_the_locale(arguments: list[str], encoding: str) -> None:
    done = run(*arguments, PYTHONIOENCODING=encoding)
    assert done.code == 0, done.err
    assert "Ж-41" in done.out


def _shell(command: str) -> Done:
    """A command line with redirections, where `$C` is the command."""
    script = command.replace("$C", shlex.join(COMMAND))
    done = subprocess.run(
        ["sh", "-c", script], env=environment(), capture_output=True, text=True, timeout=SECONDS
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("to", ["2>/dev/full", pytest.param("2>&-", marks=pytest.mark.long)])
def test_an_answer_is_given_where_progress_cannot_be(to: str) -> None:
    done = _shell(f"$C ask 'Where is order A-18?' {to}")
    assert done.code == 0
    check_only(done.out, "A-18")


LOST = "The answer could not be written ("


@pytest.mark.parametrize(
    "command",
    [
        "ask A-18 >/dev/full",
        *(pytest.param(c, marks=pytest.mark.long) for c in ("ask A-18 --json >&-", "chat >&-")),
    ],
)
def test_an_answer_that_cannot_be_written_is_kept_in_its_thread(command: str) -> None:
    done = _shell(f"echo A-18 | $C {command}")
    assert (done.code, done.err.count(LOST)) == (1, 1), done.err
    thread = thread_of(done)
    assert done.err.endswith(f"The turn was done, and is kept in the thread {thread}.\n")
    assert here("ask", "Hello!", "--thread", thread, "--json").json["turn"] == 2


@pytest.mark.parametrize(
    "command", ["orders list >&-", "orders list --json >/dev/full", "check-model >&-", "--help >&-"]
)
def test_what_cannot_be_written_is_said_in_one_sentence(command: str) -> None:
    done = _shell(f"$C {command}")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(LOST)
    assert len(done.err.splitlines()) == 1


def test_what_was_loaded_is_said_where_the_answer_cannot_be_written() -> None:
    Path("o.csv").write_text(
        "order_id,customer_id,status,placed_on,total,currency\nN-1,N,pending,2026-11-14,1,EUR\n"
    )
    done = _shell("$C orders import o.csv >/dev/full")
    assert done.code == 1
    assert "Loaded 1 order (0 of them replaced)" in done.err


@pytest.mark.long
def test_a_conversation_without_an_input_ends_with_a_sentence() -> None:
    done = _shell("$C chat <&-")
    assert (done.code, done.out) == (2, "")
    assert "The standard input cannot be read." in done.err


@pytest.mark.parametrize("blocks", [pytest.param(20, marks=pytest.mark.long), 200])
def test_a_disk_that_is_full_is_said_to_be_so(blocks: int) -> None:
    done = _shell(f"ulimit -f {blocks}; $C ask 'Where is order A-18?'")
    assert (done.code, done.out) == (1, "")
    assert "disk is full" in done.err
    assert "Something unexpected" not in done.err


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
