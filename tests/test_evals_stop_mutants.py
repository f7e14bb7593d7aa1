"""The evals are themselves tested: each sabotaged agent is stopped, by the right evaluator."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.graph import build_graph
from agent.settings import Settings
from evals.cases import find
from evals.mutants import MUTANTS
from evals.report import exit_code, lines
from evals.runner import Outcome, run
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
    ("crash", "core/one-order", "target"),
]


async def played(folder: Path, build: Build, *names: str) -> Sequence[Outcome]:
    stage = Stage(folder, Settings(model="offline"), build)
    await stage.prepare()
    cases = [file.case for name in names for file in find(name=name)]
    return await run(cases, stage)


@pytest.mark.parametrize(("mutant", "case", "evaluator"), CAUGHT)
async def test_a_sabotaged_agent_is_stopped(
    mutant: str, case: str, evaluator: str, tmp_path: Path
) -> None:
    outcomes = await played(tmp_path, MUTANTS[mutant], case)
    assert exit_code(outcomes) == 1
    found = {finding.evaluator for outcome in outcomes for finding in outcome.findings}
    assert evaluator in found, list(lines(outcomes))


async def test_the_agent_itself_passes_what_stops_its_mutants(tmp_path: Path) -> None:
    outcomes = await played(tmp_path, build_graph, *dict.fromkeys(case for _, case, _ in CAUGHT))
    assert exit_code(outcomes) == 0, list(lines(outcomes))


def test_no_mutant_is_left_out() -> None:
    assert {mutant for mutant, _, _ in CAUGHT} == set(MUTANTS)
