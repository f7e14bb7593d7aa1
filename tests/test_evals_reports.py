"""What a run leaves behind, and that a run which was killed goes on where it was."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.commands import environment, finish, here, refused, start

WRONG = """
description: It asks for the wrong thing, so that it fails.
customer: C-1001
turns:
  - ask: When does order A-17 arrive?
    calls: [{get_order: {order_id: A-17}}]
    facts: {A-17: [status]}
"""
SURPLUS = """
description: The answer holds an order that the case does not, in three places.
customer: C-1001
turns:
  - ask: When do A-17 and A-18 arrive?
    calls: [{get_delivery: {order_id: A-17}}, {get_delivery: {order_id: A-18}}]
    facts: {A-17: [total]}
"""


def test_a_failing_run_is_reported_in_every_form(tmp_path: Path) -> None:
    case, out = tmp_path / "wrong.yaml", tmp_path / "out"
    case.write_text(WRONG)
    done = here("evals", "--cases", str(case), "--repeat", "2", "--out", str(out))
    assert done.code == 1
    why = "get_order(A-17) was not called"
    assert sorted(path.name for path in out.iterdir()) == [
        *("junit.xml", "report.html", "report.md", "results.jsonl")
    ]
    suite = ElementTree.parse(out / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "2", "0")
    assert why in "".join(suite.itertext())
    markdown = (out / "report.md").read_text()
    assert markdown.startswith("## Evals: No (code only)\n")
    assert "| 0 of 2 |" in markdown
    assert why in markdown
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in rows] == ["fail", "fail"]


def test_the_page_shows_conversation_calls_and_reasons_and_asks_nobody(tmp_path: Path) -> None:
    case = tmp_path / "wrong.yaml"
    case.write_text(WRONG)
    here("evals", "--cases", str(case), "--out", str(tmp_path))
    page = (tmp_path / "report.html").read_text()
    for shown in ("When does order A-17 arrive?", "get_delivery A-17 · ok", "Harborline"):
        assert shown in page
    assert "<b>trajectory</b> get_order(A-17) was not called" in page
    assert "get_order:" in page  # what was expected
    assert not re.search(r"https?:|<script|<link|<img|@import|url\(", page)


def test_a_report_says_what_was_tested_and_when(tmp_path: Path) -> None:
    here("evals", "--case", "one-order", "--out", str(tmp_path))
    heading = r"Model offline, [\d-]{10} \d\d:\d\d UTC, policy \w{16} \(instructions of [\d-]{10}\)"
    for name in ("report.md", "report.html"):
        assert re.search(heading, (tmp_path / name).read_text())


def test_all_that_is_wrong_with_a_case_is_told_once_and_what_is_missing_first(
    tmp_path: Path,
) -> None:
    case, out = tmp_path / "wrong.yaml", tmp_path / "out"
    case.write_text(SURPLUS)
    done = here("evals", "--cases", str(case), "--case", "wrong", "--out", str(out))
    first, second = (line.strip() for line in done.out.splitlines() if line[:4].isspace())
    assert re.fullmatch(r"facts, turn 1: order A-17: total \(.*\) is missing", first)
    assert second == "facts, turn 1: order A-18 is in the answer, but not among the case's facts"
    assert f"| {first}<br>{second} |" in (out / "report.md").read_text()
    assert (out / "report.html").read_text().count("but not among the case") == 1


def test_one_case_is_shown_in_full() -> None:
    done = here("evals", "--case", "refund-repeated")
    for shown in (
        "  customer  Refund 20 USD of A-17",
        "  asked     Refund $20.00 for order A-17? → confirm",
        "  call      request_refund(order_id=A-17, amount=20, currency=USD, reason=",
        "  agent     Refund of $20.00 for order A-17, asked for before: done.",
    ):
        assert shown in done.out


def test_a_baseline_of_a_part_is_refused() -> None:
    refused(here("evals", "--case", "one-order", "--update-baseline"), "The baseline is of all")


def wait_for(out: Path, outcomes: int, running: subprocess.Popen[bytes]) -> None:
    """Until a run has written so many outcomes."""
    part = out / "results.part.jsonl"
    while not (part.exists() and part.read_text().count("\n") >= outcomes):
        assert running.poll() is None
        time.sleep(0.02)


def test_a_run_that_is_stopped_says_so_and_keeps_others_out_of_its_folder(tmp_path: Path) -> None:
    arguments = ["evals", "--cases", "core/*", "--repeat", "9", "--out", str(tmp_path)]
    stopped = start(*arguments)
    wait_for(tmp_path, 3, stopped)
    refused(here(*arguments), f"Another run is writing into {tmp_path}", "No case was run.")
    stopped.send_signal(signal.SIGINT)
    done = finish(stopped)
    assert (done.code, done.out) == (130, "")
    assert done.err.strip() == "Stopped. Nothing more was done."


@pytest.mark.long
@pytest.mark.parametrize("outcomes", range(1, 16, 2))
def test_a_run_says_the_same_whenever_it_is_stopped(outcomes: int, tmp_path: Path) -> None:
    arguments = ["evals", "--cases", "core/*", "--repeat", "9", "--out", str(tmp_path)]
    stopped = start(*arguments, "--concurrency", "9")
    wait_for(tmp_path, outcomes, stopped)
    stopped.send_signal(signal.SIGINT)
    done = finish(stopped)
    assert (done.code, done.out, done.err.strip()) == (130, "", "Stopped. Nothing more was done.")


def test_a_run_that_was_killed_goes_on_without_losing_or_doubling(tmp_path: Path) -> None:
    out = tmp_path / "out"
    part = out / "results.part.jsonl"
    arguments = ["evals", "--cases", "core/two*", "--repeat", "2", "--out", str(out)]
    code = "from agent.cli import main; import sys; main(sys.argv[1:])"
    killed = subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--concurrency", "1"],
        env=environment(),
        stdout=subprocess.DEVNULL,
    )
    wait_for(out, 3, killed)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = part.read_text().splitlines()[:3]
    with part.open("a") as file:
        file.write('{"run": "torn in the mid')
    assert here(*arguments).code == 0
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    played = [(row["case"], row["repeat"]) for row in rows]
    assert len(played) == len(set(played)) == 2 * len({case for case, _ in played})
    assert len(played) >= 10
    for line in map(json.loads, kept):
        assert line["outcome"] in rows
    assert not part.exists()


def test_the_part_of_another_run_is_no_part_of_this_one(tmp_path: Path) -> None:
    said = {"case": "core/one-order", "repeat": 1, "verdict": "fail", "seconds": 1}
    row = {"run": "another", "outcome": {**said, "findings": [], "turns": []}}
    (tmp_path / "results.part.jsonl").write_text(f"{json.dumps(row)}\n[]\n\0 torn")
    assert here("evals", "--case", "one-order", "--out", str(tmp_path)).code == 0
