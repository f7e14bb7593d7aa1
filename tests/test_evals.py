"""`support-agent evals`: what it prints, how it ends, and that nothing leaves the machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.settings import Settings
from evals.case import Case
from evals.cases import find
from evals.evaluators import EVALUATORS, Seen, Wrong
from evals.report import exit_code, lines
from evals.runner import run
from evals.target import Stage
from tests.commands import environment, here, refused


@pytest.mark.parametrize("cases", ["core/*", "shop/*"])
def test_the_agent_passes(cases: str) -> None:
    done = here("evals", "--cases", cases)
    assert done.code == 0, done.out
    *each, summary = done.out.splitlines()
    assert each == [f"✓ {file.case.name}" for file in find(cases)]
    assert summary.startswith(f"{len(each)} of {len(each)} cases passed")


def test_there_are_cases_of_every_kind() -> None:
    names = {file.case.name for file in find()}
    assert len(names) >= 24
    assert {file.case.language for file in find()} == {"en", "ru", "zh", "es"}


def test_repeats_are_played_and_told_as_one_line(tmp_path: Path) -> None:
    done = here("evals", "--case", "two-orders", "--repeat", "3", "--out", str(tmp_path / "out"))
    assert done.out.startswith("✓ core/two-orders\n1 of 1 cases passed")
    written = (tmp_path / "out" / "results.jsonl").read_text()
    rows = [json.loads(line) for line in written.splitlines()]
    assert [(row["case"], row["repeat"], row["verdict"]) for row in rows] == [
        ("core/two-orders", number, "pass") for number in (1, 2, 3)
    ]
    assert "Juniper Carriers" in rows[0]["turns"][0]["message"]


GUARD = """
import sys

def guard(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        print("NETWORK", event, arguments, file=sys.stderr, flush=True)
        raise OSError("no network here")

sys.addaudithook(guard)
from agent.cli import main
main(sys.argv[1:])
"""
LANGSMITH = {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_API_KEY": "invented",
    "LANGSMITH_PROJECT": "invented",
    "LANGCHAIN_TRACING_V2": "true",
}


@pytest.mark.parametrize("variables", [{}, LANGSMITH], ids=["no key", "a key"])
def test_no_connection_is_attempted(variables: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GUARD, "evals", "--cases", "core/f*"],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "✓ core/five-orders" in done.stdout
    assert done.stderr == ""


GOOD = """
description: The simplest question.
customer: C-1001
turns:
  - ask: When does order A-17 arrive?
    calls: [{get_delivery: {order_id: A-17}}]
    facts: {A-17: [status]}
"""


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("customer: C-1001", "customer: [", ", line 5: this case cannot be read"),
        ("customer: C-1001", "costumer: C-1001", ", line 2: the case: Additional properties"),
        ("customer: C-1001", "customer: C-9", ", line 3: customer: the shop has no customer 'C-9'"),
        ("[status]", "[colour]", ", line 7: turns.0.facts.A-17.0: 'colour' is not one of"),
        ("{A-17: [", "{A-99: [", ", line 7: turns.0.facts.A-99: C-1001 has no order 'A-99'"),
        ("{A-17: [", "{GB-15: [", ": C-1001 has no order 'GB-15'"),
        ("[status]", "[note]", ", line 7: turns.0.facts.A-17: the order has no note in the shop"),
        ("facts: {A-17: [status]}", "failures: {A-17: not_found}", "cannot be true of 'A-17'"),
        ("facts: {A-17: [status]}", "policy: dragons", "the shop has no policy 'dragons'"),
        ("{A-17: [", "{00123: [", ": C-1001 has no order '00123'"),
        ("customer: C-1001", "customer: C-1001\ncustomer: C-1001", "line 4: this case cannot"),
    ],
)
def test_a_case_file_with_a_mistake_is_refused_with_its_place(
    was: str, now: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(GOOD.replace(was, now))
    refused(here("evals", "--cases", str(file)), str(file), said, "No case was run.")


def test_a_case_of_ones_own_is_played_from_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    assert here("evals", "--cases", str(file)).out.startswith(f"✓ {tmp_path.name}/mine\n")


def test_a_name_that_no_case_has_is_wrong_usage() -> None:
    refused(here("evals", "--case", "two-dragons"), "two-dragons", "No case was run.")


def test_an_answer_that_is_not_as_expected_fails_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD.replace("get_delivery", "get_order"))
    done = here("evals", "--cases", str(file))
    assert done.code == 1
    assert done.out.splitlines()[:2] == [
        f"✗ {tmp_path.name}/mine",
        "    trajectory, turn 1: get_order(A-17) was not called; and 1 more",
    ]


async def test_what_an_evaluator_cannot_tell_blocks(tmp_path: Path) -> None:
    def unsure(seen: Seen) -> Iterator[Wrong]:
        yield Wrong("it may be so or not", "cannot tell")

    outcomes = await run(*await _one(tmp_path), evaluators=[*EVALUATORS, unsure])
    assert exit_code(outcomes) == 1
    assert list(lines(outcomes)) == [
        "? core/one-order",
        "    unsure, turn 1: cannot tell, it may be so or not",
    ]


async def test_an_evaluator_that_crashes_fails_the_case(tmp_path: Path) -> None:
    def broken(seen: Seen) -> Iterator[Wrong]:
        raise KeyError("oh")

    outcomes = await run(*await _one(tmp_path), evaluators=[*EVALUATORS, broken])
    assert exit_code(outcomes) == 1
    assert "broken: the evaluator crashed (KeyError: 'oh')" in list(lines(outcomes))[1]


def test_a_real_model_that_does_not_answer_is_no_verdict() -> None:
    variables = {"OPENAI_API_KEY": "invented", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = here("evals", "--case", "one-order", "--model", "openai:invented", **variables)
    assert done.code == 4
    assert "! core/one-order" in done.out


def test_a_real_model_without_a_key_is_wrong_usage() -> None:
    refused(here("evals", "--model", "openai:invented"), "OPENAI_API_KEY")


async def _one(folder: Path) -> tuple[list[Case], Stage]:
    stage = Stage(folder, Settings(model="offline"))
    await stage.prepare()
    return [file.case for file in find(name="one-order")], stage
