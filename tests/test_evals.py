"""`support-agent evals`: what it prints, how it ends, and that nothing leaves the machine."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from agent.settings import Settings
from evals import cases, rules, target
from evals.baseline import Comparison
from evals.case import Case
from evals.cases import find
from evals.evaluators import EVALUATORS, Seen, Wrong
from evals.gate import judge
from evals.outcomes import Outcome, results_of
from evals.report import lines
from evals.runner import run
from evals.target import Stage
from tests.commands import environment, here, refused
from tests.responses_server import Behaviour, cut, in_the_last_item, saying, serving, status


@pytest.mark.parametrize("cases", ["core/*", "shop/*"])
def test_the_agent_passes(cases: str) -> None:
    done = here("evals", "--cases", cases)
    assert done.code == 0, done.out
    names = [file.case.name for file in find(cases)]
    told = done.out.splitlines()
    assert [line.split()[:2] for line in told[: len(names)]] == [["✓", name] for name in names]
    assert told[len(names)].startswith(f"{len(names)} of {len(names)} cases passed")
    assert "Yes (code only)" in told


def test_there_are_cases_of_every_kind() -> None:
    names = {file.case.name for file in find()}
    assert len(names) >= 80
    assert {file.case.language for file in find()} == {"en", "ru", "zh", "es"}


def test_repeats_are_played_and_told_as_one_line(tmp_path: Path) -> None:
    done = here("evals", "--case", "two-orders", "--repeat", "3", "--out", str(tmp_path / "out"))
    assert "✓ core/two-orders  3 of 3" in done.out
    written = (tmp_path / "out" / "results.jsonl").read_text()
    rows = [json.loads(line) for line in written.splitlines()]
    assert [(row["case"], row["repeat"], row["verdict"]) for row in rows] == [
        ("core/two-orders", number, "pass") for number in (1, 2, 3)
    ]
    assert "Copper Line" in rows[0]["turns"][0]["report"]["message"]


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


@pytest.mark.parametrize(
    "variables", [pytest.param({}, marks=pytest.mark.long), LANGSMITH], ids=["no key", "a key"]
)
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
        ("customer: C-1001", "costumer: C-1001", ", line 3: costumer: there is no such field"),
        ("customer: C-1001", "customer: C-9", ", line 3: customer: the shop has no customer 'C-9'"),
        ("[status]", "[colour]", ", line 7: turns.0.facts.A-17.0: 'colour' is not one of"),
        ("{A-17: [", "{A-99: [", ", line 7: turns.0.facts.A-99: C-1001 has no order 'A-99'"),
        ("{A-17: [", "{GB-15: [", ": C-1001 has no order 'GB-15'"),
        ("[status]", "[note]", ", line 7: turns.0.facts.A-17: the order has no note in the shop"),
        ("facts: {A-17: [status]}", "failures: {A-17: not_found}", "cannot be true of 'A-17'"),
        ("facts: {A-17: [status]}", "policy: dragons", "the shop has no policy 'dragons'"),
        ("{A-17: [", "{00123: [", ": C-1001 has no order '00123'"),
        ("customer: C-1001", "customer: C-1001\ncustomer: C-1001", "line 4: this case cannot"),
        ("[{get_delivery:", "[{get_weather:", ", line 6: turns.0.calls.0: there is no tool"),
        ("{order_id: A-17}}]", "{order: A-17}}]", "('order' was unexpected)"),
        ("facts: {A-17: [status]}", "failures: {A-17: timeout}", "timeout cannot be true of"),
        ("turns:", "faults: {Q-1: error}\nturns:", ", line 4: faults.Q-1: the shop has no order"),
        ("facts: {A", "decide: {A-17: confirm}\n    facts: {A", "`deeds` does not say what"),
        ("facts: {A", "deeds: {A-17: done}\n    facts: {A", "`writes` does not hold it"),
        ("facts: {A", "deeds: {Z-99: refused}\n    facts: {A", ", line 7: turns.0.deeds.Z-99:"),
        ("turns:", "writes: {A-17: {status: packed}}\nturns:", ", line 4: writes.A-17: no turn"),
        (
            "{order_id: A-17}}]",
            "{order_id: 17}}]",
            ": turns.0.calls.0.get_delivery.order_id",
        ),
        ("{order_id: A-17}}]", "{order_id: Z-9}}]", "C-1001 has no order 'Z-9', and no failure"),
        ("{order_id: A-17}}]", "{}}]", "'order_id' is a required property"),
        ("A-17}}]", "A-17}}]\n    rounds: 2", ", line 7: turns.0.rounds: there are fewer calls"),
        ("A-17}}]", "A-17}}]\n    fails: ambiguous_calls", "nothing breaks off"),
        ("[status]", "&a [*a]", ", line 7: this case cannot be read (it holds an alias)"),
        ("[status]", "[" * 9999, "nested too deeply"),
        ("{A-17: [", "{[A]: [", ", line 7: this case cannot be read (a key must be text)"),
        ("The simplest question.", '"Half an \\ud83d character"', "cannot be read (no UTF-8"),
        ("facts:", "policy: ../../README\n    facts:", "the shop has no policy '../../README'"),
        ("turns:", "faults: {B-21: error}\nturns:", ", line 4: faults.B-21: no turn is about"),
        ("turns:", "faults: {A-17: {delay: .nan}}\nturns:", "'.nan' is not of type 'number'"),
        (
            "turns:",
            "writes: {A-17: {colour: red}}\nturns:",
            ", line 4: writes.A-17.colour: ",
        ),
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
    assert here("evals", "--cases", str(file)).out.startswith(f"✓ {tmp_path.name}/mine ")


def test_an_amount_of_a_case_may_be_written_with_its_cents(tmp_path: Path) -> None:
    refund = (cases.FOLDER / "shop" / "refund-confirmed.yaml").read_text()
    file = tmp_path / "mine.yaml"
    file.write_text(refund.replace("refunds: [20 USD]", "refunds: [20.00 USD]"))
    assert here("evals", "--cases", str(file)).out.startswith("✓")


def test_a_folder_of_cases_is_played_in_the_shop_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(cases.FOLDER / "schema.json", tmp_path)
    shutil.copy(Path(__file__).parent / "data" / "orders.csv", own / "shop.csv")
    (own / "mine.yaml").write_text(GOOD.replace("C-1001", "C-9001").replace("A-17", "R-501"))
    for module in (cases, target):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    assert here("evals", "--cases", "own/*").out.startswith("✓ own/mine ")


def test_a_name_that_no_case_has_is_wrong_usage() -> None:
    refused(here("evals", "--case", "two-dragons"), "two-dragons", "No case was run.")


def test_an_answer_that_is_not_as_expected_fails_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD.replace("get_delivery", "get_order"))
    done = here("evals", "--cases", str(file))
    assert done.code == 1
    first, second, *_ = done.out.splitlines()
    assert first.startswith(f"✗ {tmp_path.name}/mine  0 of 1")
    assert second == ("    trajectory, turn 1: get_order(A-17) was not called; and 1 more")


def test_of_two_files_of_one_name_none_is_left_out_in_silence(tmp_path: Path) -> None:
    for folder in ("a/same", "b/same"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "case.yaml").write_text(GOOD)
    refused(here("evals", "--cases", f"{tmp_path}/*/same/*.yaml"), "have the same name")


def test_a_break_that_never_comes_is_no_pass(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD.replace("turns:", "breaks: [1, 9]\nturns:"))
    done = here("evals", "--cases", str(file))
    assert done.code == 1
    assert "the model gave no responses [9] to break off" in done.out


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("critical = [", "critical = ", "Invalid value"),
        ("seconds = 60", "minutes = 1", "limits.seconds: Field required"),
        ("model = 0.95", "model = 95", "rate.model: "),
        ("chance = 0.05", "chance = 0", "statistics.chance: "),
        ("shop/*cancel*", "shop/*cancle*", "critical: no case fits 'shop/*cancle*'"),
    ],
)
def test_a_gate_with_a_mistake_is_refused(
    was: str, now: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text(rules.FILE.read_text().replace(was, now))
    monkeypatch.setattr(rules, "FILE", gate)
    rules.rules.cache_clear()
    try:
        refused(here("evals"), str(gate), said, "No case was run.")
    finally:
        rules.rules.cache_clear()


async def test_what_an_evaluator_cannot_tell_blocks(tmp_path: Path) -> None:
    def unsure(seen: Seen) -> Iterator[Wrong]:
        yield Wrong("it may be so or not", "cannot tell")

    outcomes = await run(*await _one(tmp_path), evaluators=[*EVALUATORS, unsure])
    assert answer(outcomes) == "no"
    assert list(lines(results_of(outcomes)))[1] == (
        "    unsure, turn 1: cannot tell, it may be so or not"
    )


async def test_an_evaluator_that_crashes_fails_the_case(tmp_path: Path) -> None:
    def broken(seen: Seen) -> Iterator[Wrong]:
        raise KeyError("oh")

    outcomes = await run(*await _one(tmp_path), evaluators=[*EVALUATORS, broken])
    assert answer(outcomes) == "no"
    told = list(lines(results_of(outcomes)))
    assert "broken: the evaluator crashed (KeyError: 'oh')" in told[1]


@pytest.mark.parametrize(
    "behaviour", [status(500), status(401), cut(in_the_last_item, cleanly=True)]
)
def test_a_real_model_that_does_not_answer_is_no_verdict(behaviour: Behaviour) -> None:
    with serving(behaviour) as server:
        variables = {"OPENAI_API_KEY": "invented", "OPENAI_BASE_URL": server.url}
        done = here("evals", "--case", "one-order", "--model", "openai:invented", **variables)
    assert done.code == 4
    assert "! core/one-order" in done.out


def test_a_real_model_without_a_key_is_wrong_usage() -> None:
    refused(here("evals", "--model", "openai:invented"), "OPENAI_API_KEY")


def test_a_run_that_may_cost_too_much_is_not_begun() -> None:
    done = here("evals", "--model", "openai:gpt-5", "--cap", "0.05", OPENAI_API_KEY="invented")
    refused(done, "openai:gpt-5", "cost up to", "0.05 are allowed", "No case was run")


def test_a_run_of_which_nobody_knows_the_price_says_so() -> None:
    variables = {"OPENAI_API_KEY": "invented", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = here("evals", "--case", "one-order", "--model", "openai:invented", **variables)
    assert "What openai:invented costs is not known" in done.err


@pytest.mark.parametrize(
    ("rating", "said"),
    [("4", "tone: 4.0 of 5 on average, 4 at worst, 1 of 1"), ("Yes!", "tone: the model did not")],
)
def test_a_model_may_rate_the_tone_and_decides_nothing(rating: str, said: str) -> None:
    with serving(saying(rating)) as server:
        done = here(
            *("evals", "--case", "one-order", "--tone", "openai:invented"),
            OPENAI_API_KEY="k",
            OPENAI_BASE_URL=server.url,
        )
    assert done.code == 0
    assert said in done.out


async def test_after_the_cap_nothing_more_is_played(tmp_path: Path) -> None:
    cases, stage = await _one(tmp_path)
    capped = replace(stage, cap=1, spent=[Decimal(2)])
    outcomes = await run(cases, capped)
    assert answer(outcomes) == "inconclusive"
    assert "1 USD are spent" in list(lines(results_of(outcomes)))[1]


def answer(outcomes: list[Outcome]) -> str:
    return judge(results_of(outcomes), Comparison(), "offline").answer


async def _one(folder: Path) -> tuple[list[Case], Stage]:
    stage = Stage(folder, Settings(model="offline"))
    await stage.prepare()
    return [file.case for file in find(name="one-order")], stage
