"""LangSmith down, refusing, hanging: the turn is answered, the command ends, the trace is kept."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from agent.traces_spool import SUFFIX, Run, Spool, make_room
from tests import commands
from tests.ingest import Ingest, ingest, metadata

QUESTION = "When do A-17 and B-21 arrive?"
FOLDER = Path("support-agent-traces")
OUTAGES: dict[str, tuple[int, dict[str, str]] | None] = {
    "hangs": None,
    "fails": (500, {}),
    "is busy": (429, {"Retry-After": "20"}),
    "refuses the key": (401, {}),
}


@pytest.fixture
def server() -> Iterator[Ingest]:
    with ingest() as here:
        yield here


def waiting() -> list[Path]:
    return list(FOLDER.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize(
    "outage",
    [pytest.param(o, marks=[pytest.mark.long] if o != "fails" else []) for o in OUTAGES],
)
def test_the_turn_is_answered_and_its_trace_kept_and_sent_later(
    outage: str, server: Ingest
) -> None:
    server.answer = OUTAGES[outage]
    done = commands.run("ask", QUESTION, "--json", **server.variables)
    assert done.code == 0, done.err
    assert len(done.json["cards"]) == 2
    assert "Traceback" not in done.err
    assert len(waiting()) == 1

    later = server.run("traces", "send")
    commands.refused(later, "LangSmith did not take", "0 traces were sent", "Try again", code=4)
    assert len(waiting()) == 1

    server.answer = (202, {})
    sent = server.run("traces", "send")
    assert (sent.code, sent.out.strip()) == (0, "1 traces were sent.")
    assert not waiting()
    [root] = server.roots
    assert root["id"] == done.json["trace_id"]
    assert {metadata(run)["call_id"] for run in server.of_type("tool")} == {
        call["call_id"] for call in done.json["calls"]
    }


def test_a_server_that_is_down_costs_no_answer_and_no_trace() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        variables = Ingest(url=url).variables
        done = commands.run("ask", QUESTION, "--json", **variables)
    assert done.code == 0, done.err
    assert len(waiting()) == 1


@pytest.mark.long
def test_a_terminated_command_leaves_its_trace(server: Ingest) -> None:
    server.answer = None
    process = commands.start("ask", QUESTION, **server.variables)
    while not waiting():
        assert process.poll() is None, "it ended before it was traced"
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    done = commands.finish(process)
    assert done.code in (0, 143), done.err
    assert waiting()  # what ends after the turn did is a file of its own


def test_the_end_of_a_process_does_not_wait_for_a_server_that_hangs(
    server: Ingest, tmp_path: Path
) -> None:
    server.answer = None
    code = (
        "import time; from agent import settings, tracing;"
        "client = tracing.install(settings.load());"
        "from langsmith import trace\n"
        "with trace('x'): pass\n"
        "print(time.monotonic(), flush=True)\n"
        "tracing.flush()"
    )
    process = subprocess.run(
        [commands.COMMAND[0], "-c", code],
        env=commands.environment(**server.variables),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert time.monotonic() - float(process.stdout) < 5


@pytest.mark.long
def test_a_folder_that_cannot_be_written_costs_nothing_but_the_trace(server: Ingest) -> None:
    FOLDER.write_text("a file")
    done = commands.run("ask", QUESTION, "--json", **server.variables)
    assert done.code == 0, done.err
    assert [root["id"] for root in server.roots] == [done.json["trace_id"]]


def test_what_cannot_be_sent_stays_and_holds_up_nothing(server: Ingest) -> None:
    """Damaged files, a trace that LangSmith does not take for what it is, and whole ones behind."""
    kept = left_behind(server, 2)
    damaged = {
        "0": b"",
        "1": b"\xff\x00{{{",
        "2": b'[]\n5\n{"post": 5}\n{"post": {"id": ["a"]}}\n',
        "3": b'{"post": {"id": "x"}}\n',
        "4": b'{"post": {"id": "x", "trace_id": "x", "dotted_order": "x", "extra": 5}}\n',
    }
    for name, content in damaged.items():
        (FOLDER / f"{name}{SUFFIX}").write_bytes(content)
    with kept[0].open("ab") as cut:
        cut.write(b'{"patch": {"id": "01a2')

    done = server.run("traces", "send")
    assert done.code == 1, done.err
    assert done.out == (
        "2 traces were sent. 2 were refused by LangSmith, and stay. 3 cannot be read, and stay.\n"
    )
    assert len(server.roots) == 2
    assert sorted(file.name[0] for file in waiting()) == list("01234")


@pytest.mark.parametrize(("status", "code"), [(413, 1), (403, 4)])
def test_a_trace_that_is_refused_is_told_from_a_server_that_refuses_all(
    status: int, code: int, server: Ingest
) -> None:
    left_behind(server, 2)
    server.answer, before = (status, {}), server.asked
    done = server.run("traces", "send")
    assert done.code == code
    assert server.asked - before == {413: 2, 403: 1}[status]
    assert len(waiting()) == 2


@pytest.mark.long
def test_two_that_send_at_once_send_each_trace_once(server: Ingest) -> None:
    left_behind(server, 30)
    both = [commands.start("traces", "send", **server.variables) for _ in range(2)]
    assert [commands.finish(each).code for each in both] == [0, 0]
    assert (len(server.sent), len(server.roots), waiting()) == (30, 30, [])


def test_a_sender_that_is_killed_loses_no_trace(server: Ingest) -> None:
    left_behind(server, 30)
    sender = commands.start("traces", "send", **server.variables)
    while len(server.sent) < 5:
        time.sleep(0.001)
    sender.kill()
    commands.finish(sender)
    server.run("traces", "send")
    assert (len(server.roots), waiting()) == (30, [])


def test_what_is_traced_while_langsmith_hangs_is_on_the_disk(tmp_path: Path) -> None:
    taken, go_on = threading.Event(), threading.Event()

    def hangs(posts: list[Run], patches: list[Run]) -> None:
        taken.set()
        go_on.wait()

    spool = Spool(tmp_path, hangs)
    for number in (1, 2):
        run = {"id": str(number), "trace_id": str(number), "extra": {"metadata": {}}}
        spool.put("post", run)
        spool.put("patch", {**run, "end_time": "now"})
        taken.wait()
    spool.flush(0.5)
    assert [file.read_text().count("\n") for file in tmp_path.iterdir()] == [2, 2]
    go_on.set()
    spool.flush(60)


def test_a_disk_that_is_full_costs_no_turn_and_no_words() -> None:
    """Files of this process cannot grow here, as on a disk without room."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
        "from pathlib import Path; from agent.traces_spool import Spool\n"
        "sent = []\n"
        "spool = Spool(Path('full'), lambda posts, patches: sent.extend(posts))\n"
        "run = {'id': '1', 'trace_id': '1', 'extra': {'metadata': {}}}\n"
        "spool.put('post', run); spool.put('patch', {**run, 'end_time': 'now'})\n"
        "spool.flush(); print(len(sent))"
    )
    done = subprocess.run(
        [commands.COMMAND[0], "-c", code],
        env=commands.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def left_behind(server: Ingest, number: int) -> list[Path]:
    """As many traces in the folder: one of a turn while LangSmith was down, under other ids."""
    server.answer = (500, {})
    server.run("ask", QUESTION)
    server.answer = (202, {})
    [kept] = waiting()
    id_ = kept.name.partition("-")[2].removesuffix(SUFFIX)
    for _ in range(number):
        new = str(uuid4())
        (FOLDER / f"9-{new}{SUFFIX}").write_text(kept.read_text().replace(id_, new))
    kept.unlink()
    return waiting()


def test_the_folder_keeps_the_newest_traces_within_its_bound(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}{SUFFIX}").write_bytes(b"x" * 100)
    make_room(tmp_path, 250)
    assert [file.name[0] for file in sorted(tmp_path.iterdir())] == ["3", "4"]


def test_traces_and_their_key_are_their_owners_to_read(server: Ingest) -> None:
    server.answer = (500, {})
    server.run("ask", QUESTION)
    files = [FOLDER, *FOLDER.iterdir()]
    assert {oct(os.stat(file).st_mode & 0o077) for file in files} == {"0o0"}


def test_traces_are_sent_only_where_tracing_is_on() -> None:
    commands.refused(commands.here("traces", "send"), "LANGSMITH_TRACING", "Nothing was sent")
