"""All cases through `langsmith.aevaluate`: the same code that an experiment at LangSmith runs.

Nothing leaves this machine but what a real model is asked. Rows come in the order in which cases
finish, a crashed target is no error to it, and a crashed evaluator has no score: all of that is put
right here, so that an outcome is never an average and never missing.
"""

import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from langsmith import Client, aevaluate, tracing_context
from langsmith.schemas import Example, Run

from evals.case import Case
from evals.evaluators import EVALUATORS, Evaluator, Seen, Verdict
from evals.target import Stage
from evals.truth import truth_of

# What the SDK would ask its server for, were it not told.
INFO: Any = {"version": "0", "batch_ingest_config": None}


class Finding(NamedTuple):
    """What is wrong with a case. turn: counted from 1, 0 where it is about all of them."""

    evaluator: str
    turn: int
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Outcome:
    """One case, played once. "trouble" lies outside the agent: the model did not answer."""

    case: str
    repeat: int
    verdict: Literal["pass", "fail", "cannot tell", "trouble"]
    findings: list[Finding]
    seconds: float
    turns: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "findings": [finding._asdict() for finding in self.findings]}


async def run(
    cases: Sequence[Case],
    stage: Stage,
    *,
    repeat: int = 1,
    concurrency: int = 4,
    evaluators: Sequence[Evaluator] = EVALUATORS,
) -> list[Outcome]:
    """The outcomes in the order of the cases. `stage` must be prepared."""
    by_name = {case.name: case for case in cases}
    scene = _Scene(cases)

    async def target(inputs: dict[str, Any]) -> dict[str, Any]:
        with tracing_context(enabled=False):  # else LangChain's tracer sends the graph's runs
            return await stage.play(by_name[inputs["case"]])

    with _quiet():
        rows = await aevaluate(
            target,
            data=[_example(case) for case in cases],
            evaluators=[_scored(evaluator, scene) for evaluator in evaluators],
            num_repetitions=repeat,
            max_concurrency=concurrency,
            client=_silent_client(),
            upload_results=False,
            disable_evaluator_tracing=True,
        )
    found: dict[str, list[Any]] = {case.name: [] for case in cases}
    async for row in rows:
        found[_name(row["example"])].append(row)
    return [
        _outcome(case, number, rows, [evaluator.__name__ for evaluator in evaluators], stage)
        for case in cases
        for number, rows in _repeats(found[case.name], repeat)
    ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the name of an experiment that nobody sees, and the news that this is a beta."""
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'upload_")
        yield


def _silent_client() -> Client:
    """A client that asks nobody anything: no server, no key, no thread that would send."""
    return Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False, info=INFO)


def _example(case: Case) -> Example:
    data_set = uuid.uuid5(uuid.NAMESPACE_URL, "support-agent/evals")
    return Example(
        id=uuid.uuid5(data_set, case.name),
        dataset_id=data_set,
        inputs={"case": case.name, "asks": [turn.ask for turn in case.turns]},
        outputs=case.model_dump(mode="json"),
        metadata={"language": case.language, "description": case.description},
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def _name(example: Example) -> str:
    return str((example.inputs or {})["case"])


class _Scene:
    """What evaluators see of each run, read once, whatever their number."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = {case.name: case for case in cases}
        self._seen: dict[uuid.UUID, list[Seen]] = {}

    def of(self, run: Run, example: Example) -> list[Seen]:
        """Each turn of the case; none where it crashed, which its outcome tells."""
        if run.error or run.outputs is None:
            return []
        if run.id not in self._seen:
            case, truth = self._cases[_name(example)], truth_of(Path(run.outputs["database"]))
            turns = zip(case.turns, run.outputs["turns"], strict=True)
            self._seen[run.id] = [Seen(case, turn, **came, truth=truth) for turn, came in turns]
        return self._seen[run.id]


def _scored(evaluator: Evaluator, scene: _Scene) -> Callable[[Run, Example], Any]:
    """An evaluator as LangSmith calls it; what it found stands in `extra`."""

    def score(run: Run, example: Example) -> dict[str, Any]:
        findings = _findings(evaluator, scene, run, example)
        return {
            "key": evaluator.__name__,
            "score": int(not findings),
            "value": _worst(findings),
            "comment": "; ".join(finding.why for finding in findings) or None,
            "extra": {"findings": findings},
        }

    score.__name__ = evaluator.__name__
    return score


def _findings(evaluator: Evaluator, scene: _Scene, run: Run, example: Example) -> list[Finding]:
    try:
        return [
            Finding(evaluator.__name__, number, wrong.verdict, wrong.why)
            for number, seen in enumerate(scene.of(run, example), 1)
            for wrong in evaluator(seen)
        ]
    except Exception as error:  # to LangSmith a crash is a score that is missing
        why = f"the evaluator crashed ({type(error).__name__}: {error})"
        return [Finding(evaluator.__name__, 0, "fail", why)]


def _repeats(rows: list[Any], repeat: int) -> list[tuple[int, Any]]:
    """The rows of a case as they began, counted; None for one that is missing."""
    began = sorted(rows, key=lambda row: row["run"].start_time)
    return list(enumerate([*began, *[None] * (repeat - len(began))], 1))


def _outcome(case: Case, number: int, row: Any, evaluators: list[str], stage: Stage) -> Outcome:
    if row is None:
        missing = Finding("runner", 0, "fail", "the case was not played")
        return Outcome(case.name, number, "fail", [missing], 0, [])
    run, results = row["run"], row["evaluation_results"]["results"]
    turns = [played["report"] for played in (run.outputs or {}).get("turns", ())]
    seconds = round((run.end_time - run.start_time).total_seconds(), 3)
    findings = _crash(run) or _told(results, evaluators)
    return Outcome(
        case=case.name,
        repeat=number,
        verdict="trouble" if _outside(turns, stage) else _worst(findings),
        findings=findings,
        seconds=seconds,
        turns=turns,
    )


def _crash(run: Run) -> list[Finding]:
    if not run.error:
        return []
    return [Finding("target", 0, "fail", f"the case crashed: {run.error.splitlines()[0]}")]


def _told(results: Sequence[Any], evaluators: list[str]) -> list[Finding]:
    """What each evaluator found. One that crashed or said nothing has failed the case."""
    by_key = {result.key: result for result in results}
    findings: list[Finding] = []
    for name in evaluators:
        result = by_key.get(name)
        if result is None or result.score is None:
            findings.append(Finding(name, 0, "fail", "the evaluator gave no result"))
        else:
            findings += cast(list[Finding], result.extra["findings"])
    return findings


def _worst(findings: Sequence[Finding]) -> Verdict:
    verdicts = {finding.verdict for finding in findings}
    return next((v for v in ("fail", "cannot tell") if v in verdicts), "pass")


def _outside(turns: Sequence[dict[str, Any]], stage: Stage) -> bool:
    """Whether a vendor's model could not be asked; the offline one has no such excuse."""
    kinds = {(turn["error"] or {}).get("kind") for turn in turns}
    return stage.settings.provider != "offline" and "model_unavailable" in kinds
