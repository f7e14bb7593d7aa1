"""`evals --upload`: an experiment at LangSmith, over a data set that follows the case files."""

from pathlib import Path
from typing import Any

import pytest

from evals.cases import CaseFile
from evals.evaluators import EVALUATORS
from evals.upload import client, in_step
from tests.commands import here, refused, run
from tests.langsmith_server import ROUTES, LangSmith, Refusal, langsmith_server

CASE = """
description: The simplest question.
customer: C-1001
turns:
  - ask: When does order A-17 arrive?
    calls: [{get_delivery: {order_id: A-17}}]
    facts: {A-17: [status]}
"""


def test_a_run_becomes_an_experiment() -> None:
    with langsmith_server() as langsmith:
        done = run(
            "evals", "--cases", "core/on*", "--repeat", "2", "--upload", **langsmith.variables
        )
    assert done.code == 0, done.out + done.err
    [dataset] = langsmith.datasets.values()
    [example] = langsmith.examples.values()
    [experiment] = langsmith.experiments.values()
    assert (dataset["name"], example["inputs"]["case"]) == ("support-agent evals", "core/one-order")
    assert experiment["reference_dataset_id"] == dataset["id"]
    roots = [each for each in langsmith.runs.values() if not each.get("parent_run_id")]
    assert len(langsmith.runs) == len(roots) == 2
    for each in roots:
        assert each["reference_example_id"] == example["id"]
        assert each["session_name"] == experiment["name"]
        assert "A-17" in each["outputs"]["turns"][0]["report"]["message"]
    given = {(each["run_id"], each["key"]): each["score"] for each in langsmith.feedback}
    names = [evaluator.__name__ for evaluator in EVALUATORS]
    assert given == {(root["id"], name): 1 for root in roots for name in names}


def test_the_data_set_follows_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(langsmith: LangSmith, whole: bool = True, **files: str) -> dict[str, Any]:
        for name, content in files.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        cases = [CaseFile(tmp_path / f"{name}.yaml").case for name in files]
        langsmith.writes.clear()
        in_step(client(), cases, whole=whole)
        return {each["inputs"]["case"]: each for each in langsmith.examples.values()}

    with langsmith_server() as langsmith:
        for name, value in langsmith.variables.items():
            monkeypatch.setenv(name, value)
        first = keep(langsmith, a=CASE, b=CASE)
        assert len(first) == 2
        assert keep(langsmith, a=CASE, b=CASE) == first
        assert langsmith.writes == []
        changed = keep(langsmith, a=CASE.replace("arrive", "come"), b=CASE)
        [one, other] = changed
        assert changed[one]["inputs"]["asks"] == ["When does order A-17 come?"]
        assert changed[one]["id"] == first[one]["id"]
        assert changed[other] == first[other]
        assert len(keep(langsmith, whole=False, b=CASE)) == 2
        assert list(keep(langsmith, b=CASE)) == [other]


def test_what_langsmith_does_not_take_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise Refusal(403, "This project takes no more runs.")

    routes = [(*route[:2], full if route[1] == "/runs/multipart" else route[2]) for route in ROUTES]
    monkeypatch.setattr("tests.langsmith_server.ROUTES", routes)
    with langsmith_server() as langsmith:
        done = run("evals", "--case", "core/one-order", "--upload", **langsmith.variables)
    assert done.code == 4
    assert "LangSmith did not take all of it" in done.err


def test_an_upload_needs_a_key() -> None:
    refused(
        here("evals", "--case", "one-order", "--upload"), "LANGSMITH_API_KEY", "No case was run."
    )


@pytest.mark.long
def test_a_server_that_does_not_answer_is_trouble_outside() -> None:
    where = {"LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_API_KEY": "k"}
    done = run("evals", "--case", "one-order", "--upload", **where)
    assert (done.code, done.out) == (4, "")
    assert "LangSmith" in done.err
