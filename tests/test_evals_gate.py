"""Yes, no, inconclusive: what decides a release, and what it is compared with."""

from math import comb
from pathlib import Path
from typing import Any

import pytest

from evals import baseline
from evals.baseline import Comparison, Kind, Stored, compare, release
from evals.case import Case, Turn
from evals.gate import EXIT, interval, judge, pass_at_1, pass_each_time, smallest_drop
from evals.outcomes import Fate, Outcome, Result
from tests.commands import here, refused


def result(case: str, *fates: Fate) -> Result:
    return Result(case, [Outcome(case, n, fate, [], 0.1, []) for n, fate in enumerate(fates, 1)])


def many(number: int, failing: int = 0) -> list[Result]:
    """Cases that are not critical, some of which fail."""
    return [result(f"own/{n}", "fail" if n < failing else "pass") for n in range(number)]


@pytest.mark.parametrize(
    ("results", "kind", "answer"),
    [
        ([result("core/a", "pass", "pass")], "offline", "yes"),
        ([result("core/a", "pass", "pass", "fail")], "model", "no"),
        ([*many(40, failing=1)], "offline", "no"),
        ([*many(40, failing=1)], "model", "yes"),
        ([*many(40, failing=3)], "model", "no"),
        ([*many(40), result("own/x", "cannot tell")], "model", "no"),
        ([*many(40), result("own/x", "trouble")], "model", "inconclusive"),
        ([result("core/a", "fail"), result("core/b", "trouble")], "model", "no"),
        ([result("core/a", "pass", "trouble")], "model", "inconclusive"),
    ],
)
def test_the_gate_answers(results: list[Result], kind: Kind, answer: str) -> None:
    judged = judge(results, Comparison(), kind)
    assert judged.answer == answer
    assert bool(judged.why) is (answer != "yes")


def test_a_real_model_needs_a_run_to_compare_with_and_the_code_does_not() -> None:
    nothing = Comparison(problem="no run of this kind is stored")
    assert judge(many(40), nothing, "model").answer == "inconclusive"
    assert judge(many(40), nothing, "offline").answer == "yes"
    assert judge(many(40, failing=3), nothing, "model").answer == "no"


def test_each_answer_has_an_exit_code() -> None:
    assert EXIT == {"yes": 0, "no": 1, "inconclusive": 4}


def test_passing_once_and_passing_each_time_are_two_figures() -> None:
    results = [result("a", "pass", "fail", "pass", "pass"), result("b", "pass", "pass")]
    assert pass_at_1(results) == 0.875
    assert pass_each_time(results) == 0.5


def test_a_rate_has_its_interval() -> None:
    low, high = interval(48 / 50, 50)
    assert (round(low, 3), round(high, 3)) == (0.865, 0.989)
    assert interval(1, 10)[1] == 1
    assert interval(0.5, 0) == (0, 1)


@pytest.mark.parametrize("cases", [20, 117, 400])
def test_the_smallest_drop_is_seen_as_often_as_it_says(cases: int) -> None:
    drop = smallest_drop(cases, 6)
    assert drop is not None
    unseen = sum(comb(cases, n) * drop**n * (1 - drop) ** (cases - n) for n in range(6))
    assert 0.79 < 1 - unseen < 0.83


def test_too_few_cases_see_no_drop() -> None:
    assert smallest_drop(5, 6) is None
    [*_, said] = judge([result("core/a", "pass")], Comparison(), "offline").lines
    assert said.startswith("So few cases (1)")


ABOUT = {"model": "openai:m", "policy": "p", "code": "c", "evaluators": "e"}


def run_of(passed: dict[str, bool], **tested: Any) -> Stored:
    cases = {name: f"digest of {name}" for name in passed}
    about = baseline.Tested.model_validate({**ABOUT, "cases": cases, **tested})
    return Stored.model_validate(
        {"at": "2026-11-30T10:00:00Z", "answer": "yes", "tested": about, "passed": passed}
    )


def test_runs_are_compared_case_by_case() -> None:
    stored = run_of({"a": True, "b": False, "c": True, "d": True, "e": True})
    now = run_of({"a": False, "b": True, "c": True, "e": True, "f": True}).tested
    now.cases["e"] = "reworded"
    fates: dict[str, Fate] = {"a": "fail", "b": "pass", "c": "pass", "e": "pass", "f": "pass"}
    found = compare([result(name, fate) for name, fate in fates.items()], now, stored)
    assert (found.regressed, found.fixed) == (["a"], ["b"])
    assert (found.new, found.gone) == (["e", "f"], ["d", "e"])
    assert found.alarms(0.05) == []


@pytest.mark.parametrize(("worse", "better", "alarm"), [(5, 0, False), (6, 0, True), (8, 2, False)])
def test_a_drop_counts_that_chance_does_not_explain(worse: int, better: int, alarm: bool) -> None:
    names = [str(n) for n in range(worse + better)]
    found = Comparison(regressed=names[:worse], fixed=names[worse:])
    assert bool(found.alarms(0.05)) is alarm
    judged = judge(many(40), found, "model")
    assert judged.answer == ("no" if alarm else "yes")


def test_runs_of_other_evaluators_are_not_compared() -> None:
    stored, now = run_of({"a": True}), run_of({"a": True}, evaluators="other").tested
    found = compare([result("a", "fail")], now, stored)
    assert (found.regressed, found.problem) == ([], "the stored run was judged by other evaluators")


@pytest.mark.parametrize(
    ("changed", "deployed", "said"),
    [
        ({}, "offline", "yes: nothing changed since the run on openai:m on 2026-11-30"),
        ({}, "openai:m", "yes: "),
        ({}, "openai:other", "inconclusive: model changed since"),
        ({"policy": "new"}, "offline", "inconclusive: policy changed since"),
        ({"evaluators": "new", "cases": {"a": "new"}}, "offline", "inconclusive: evaluators and"),
        ({"cases": {}}, "offline", "yes: "),
    ],
)
def test_an_offline_run_says_what_the_last_real_one_still_proves(
    changed: dict[str, Any], deployed: str, said: str
) -> None:
    now = run_of({"a": True}, **changed).tested
    assert release(now, run_of({"a": True}), deployed).startswith(said)


def test_without_a_real_run_there_is_no_release_verdict() -> None:
    said = release(run_of({}).tested, None, "offline")
    assert said.startswith("inconclusive")
    assert "--update-baseline stores one" in said


def test_a_baseline_is_kept_by_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "FILE", tmp_path / "baseline.json")
    assert baseline.load() == {}
    baseline.store("offline", many(2, failing=1), run_of({}).tested, "no")
    baseline.store("model", many(1), run_of({}).tested, "yes")
    kept = baseline.load()
    assert kept["offline"].passed == {"own/0": False, "own/1": True}
    assert (kept["offline"].answer, kept["model"].answer) == ("no", "yes")


def test_a_case_that_got_no_answer_is_no_failure_of_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "FILE", tmp_path / "baseline.json")
    now = run_of({"a": True, "b": True}).tested
    baseline.store("model", [result("a", "pass"), result("b", "trouble")], now, "inconclusive")
    found = compare([result("a", "fail"), result("b", "pass")], now, baseline.load()["model"])
    assert (found.regressed, found.fixed, found.new) == (["a"], [], ["b"])


@pytest.mark.parametrize("content", ["", "[]", '{"offline": {"passed": {}}}', '{"another": 1}'])
def test_a_damaged_baseline_stops_the_run(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "FILE", tmp_path / "baseline.json")
    baseline.FILE.write_text(content)
    refused(here("evals", "--case", "one-order"), "baseline.json is damaged", "No case was run.")


def test_what_was_tested_is_bound_to_the_words_of_a_case() -> None:
    def case(ask: str) -> Case:
        turns = (Turn(ask=ask, calls=()),)
        return Case(name="a", description="", customer="C-1001", turns=turns)

    one, other = (baseline.tested([case(ask)], "offline") for ask in ("Hi", "Hello"))
    assert one.cases != other.cases
    assert one.model_copy(update={"cases": other.cases}) == other
