"""The evals are themselves tested: each sabotaged agent is stopped, by the right evaluator."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.graph import build_graph
from agent.settings import Settings
from evals.baseline import Comparison
from evals.cases import find
from evals.gate import judge
from evals.mutants import MUTANTS
from evals.outcomes import Outcome, results_of
from evals.report import lines
from evals.runner import run
from evals.target import Build, Stage

# Each mutant, the case that must catch it, and the evaluator that must say so.
CAUGHT = [
    ("zipped by arrival", "core/reversed-completion", "protocol"),
    ("zipped by arrival, in the name of the call", "core/reversed-completion", "facts"),
    ("zipped by arrival, in the name of the call", "core/reversed-completion-of-five", "facts"),
    ("zipped by arrival, in the name of the call", "core/first-fails-late", "failures"),
    ("forgotten call", "core/two-orders", "trajectory"),
    ("swapped values", "core/two-orders", "facts"),
    ("swapped values", "core/follow-up-about-both", "facts"),
    ("last result for all", "core/three-orders", "facts"),
    ("invented date", "core/one-order", "facts"),
    ("invented amount", "core/same-tool-twice", "facts"),
    ("data for a failed call", "core/second-fails", "failures"),
    ("data for a failed call", "core/unknown-order", "failures"),
    ("unchecked told as absent", "core/second-fails", "failures"),
    ("missing card", "core/two-orders", "facts"),
    ("missing card", "core/unknown-order", "failures"),
    ("another language", "core/one-order", "language"),
    ("another customer's data", "core/another-customers-order", "privacy"),
    ("another customer's data", "core/another-customers-order", "failures"),
    ("kept by name", "core/two-orders", "facts"),
    ("result of an earlier turn", "core/same-questions-other-turn", "facts"),
    ("result of an earlier turn", "shop/status-before-and-after", "facts"),
    ("invented order", "core/two-orders", "facts"),
    ("one after the other", "core/reversed-completion-of-five", "latency"),
    ("refunded twice", "shop/refund-confirmed", "deeds"),
    ("refunded twice", "shop/refund-repeated", "deeds"),
    ("refund claimed and not made", "shop/refund-confirmed", "deeds"),
    ("change tried again", "core/answer-to-a-write-lost", "deeds"),
    ("confirmation skipped", "shop/cancel-confirmed", "deeds"),
    ("confirmation skipped", "core/confirmation-left-open", "deeds"),
    ("confirmed afterwards", "shop/cancel-confirmed", "deeds"),
    ("confirmed afterwards", "shop/refund-refused-by-the-customer", "deeds"),
    ("no taken for yes", "shop/address-refused-by-the-customer", "deeds"),
    ("told as done", "shop/cancel-delivered", "deeds"),
    ("told as done", "shop/refund-needs-staff", "deeds"),
    ("told as done", "shop/ru-cancel-delivered", "deeds"),
    ("told as done", "shop/zh-refund-refused-by-the-customer", "deeds"),
    ("told as done", "shop/es-cancel-delivered", "deeds"),
    ("crash", "core/one-order", "target"),
]


def answer(outcomes: Sequence[Outcome]) -> str:
    return judge(results_of(outcomes), Comparison(), "offline").answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The databases that cases begin with: making them takes longer than a case."""
    prepared = tmp_path_factory.mktemp("stage")
    asyncio.run(Stage(prepared, Settings(model="offline")).prepare())
    return prepared


async def played(folder: Path, build: Build, *names: str) -> Sequence[Outcome]:
    stage = Stage(folder, Settings(model="offline"), build)
    cases = [file.case for name in names for file in find(name=name)]
    return await run(cases, stage)


def _cases() -> Iterator[Any]:
    """In the short run, each mutant once."""
    seen: set[str] = set()
    for each in CAUGHT:
        yield pytest.param(*each, marks=[pytest.mark.long][: each[0] in seen])
        seen.add(each[0])


@pytest.mark.parametrize(("mutant", "case", "evaluator"), [*_cases()])
async def test_a_sabotaged_agent_is_stopped(
    mutant: str, case: str, evaluator: str, folder: Path
) -> None:
    outcomes = await played(folder, MUTANTS[mutant], case)
    assert answer(outcomes) == "no"
    found = {finding.evaluator for outcome in outcomes for finding in outcome.findings}
    assert evaluator in found, list(lines(results_of(outcomes)))


async def test_the_agent_itself_passes_what_stops_its_mutants(folder: Path) -> None:
    outcomes = await played(folder, build_graph, *dict.fromkeys(case for _, case, _ in CAUGHT))
    assert answer(outcomes) == "yes", list(lines(results_of(outcomes)))


def test_no_mutant_is_left_out() -> None:
    assert {mutant for mutant, _, _ in CAUGHT} == set(MUTANTS)
