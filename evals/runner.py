"""All cases through `langsmith.aevaluate`: the same code that an experiment at LangSmith runs.

Nothing leaves this machine but what a real model is asked, unless a client that uploads is given.
Rows come in the order in which cases finish, a crashed target is no error to it, and a crashed
evaluator has no score: all of that is put right here, so that an outcome is never an average and
never missing.
"""

import asyncio
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import yaml
from langsmith import Client, aevaluate, get_current_run_tree, tracing_context
from langsmith.schemas import Example, Run

from evals.case import Case
from evals.evaluators import EVALUATORS, Evaluator, Seen
from evals.outcomes import Fate, Finding, Outcome, worst
from evals.target import Stage
from evals.upload import example_of

# What the SDK would ask its server for, were it not told.
INFO: Any = {"version": "0", "batch_ingest_config": None}
DATA_SET = uuid.uuid5(uuid.NAMESPACE_URL, "support-agent/evals")
FLUSH = 60.0  # seconds that LangSmith is given to take what is left
SECONDS = 300  # that a case may take, whatever the model does
OUTSIDE = ("model_unavailable", "stream_interrupted")  # of a vendor's model: no fault of the agent
NOTHING = [Finding("evals", 0, "fail", "the evaluators gave no result")]


async def run(
    cases: Sequence[Case],
    stage: Stage,
    *,
    repeat: int = 1,
    concurrency: int = 4,
    evaluators: Sequence[Evaluator] = EVALUATORS,
    done: Sequence[Outcome] = (),
    told: Callable[[Outcome], None] = lambda outcome: None,
    client: Client | None = None,
    examples: Mapping[str, Example] | None = None,
) -> list[Outcome]:
    """The outcomes in the order of the cases. `stage` must be prepared.

    done: outcomes of a run that was broken off; only what is missing is played. told: is given each
    new outcome as it comes. client: makes it an experiment at LangSmith, over these `examples` of a
    data set.
    """
    by_name = {case.name: case for case in cases}
    examples = examples or {case.name: example_of(case, DATA_SET) for case in cases}
    outcomes = {(outcome.case, outcome.repeat): outcome for outcome in done}
    numbers = range(1, repeat + 1)
    missing = [case.name for n in numbers for case in cases if (case.name, n) not in outcomes]
    played: dict[uuid.UUID, list[Seen]] = {}
    findings: dict[uuid.UUID, list[Finding]] = {}

    async def target(inputs: dict[str, Any]) -> dict[str, Any]:
        this: Any = get_current_run_tree()
        with tracing_context(enabled=False):  # else LangChain's tracer sends the graph's runs
            case = by_name[inputs["case"]]
            played[this.id] = await asyncio.wait_for(stage.play(case), SECONDS)
        return {"turns": [_shown(seen) for seen in played[this.id]]}

    def score(run: Run, example: Example) -> dict[str, Any]:
        found = _findings(run, played.pop(run.id, []), evaluators)
        findings[run.id] = list(dict.fromkeys(found))
        return {"results": [_feedback(each, findings[run.id]) for each in evaluators]}

    if missing:
        with _quiet():
            rows = await aevaluate(
                target,
                data=[examples[name] for name in missing],
                evaluators=[score],
                max_concurrency=concurrency,
                client=client or _silent_client(),
                experiment_prefix=f"support-agent {stage.settings.model}",
                upload_results=client is not None,
                disable_evaluator_tracing=True,
                blocking=False,
            )
        async for row in rows:
            name = str((row["example"].inputs or {})["case"])
            number = next(n for n in numbers if (name, n) not in outcomes)
            found = findings.get(row["run"].id, NOTHING)
            outcomes[name, number] = _outcome(row["run"], name, number, found, stage)
            told(outcomes[name, number])
    if client:
        await asyncio.to_thread(client.flush, FLUSH)
    every = [(case.name, number) for case in cases for number in numbers]
    return [outcomes.get(each) or Outcome(*each, "fail", NOTHING, 0, []) for each in every]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the name of an experiment that nobody sees, and the news that this is a beta."""
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'upload_")
        yield


def _silent_client() -> Client:
    """A client that asks nobody anything: no server, no key, no thread that would send."""
    return Client(api_url="http://127.0.0.1:9", api_key="none", auto_batch_tracing=False, info=INFO)


def _shown(seen: Seen) -> dict[str, Any]:
    """What is kept of a turn."""
    expected = seen.turn.model_dump(mode="json", exclude={"ask"}, exclude_defaults=True)
    return {
        "ask": seen.turn.ask,
        "expected": yaml.safe_dump(expected, allow_unicode=True, default_flow_style=None),
        "report": seen.report,
        "history": seen.history,
        "asked": seen.asked,
        "seconds": seen.seconds,
    }


def _findings(
    run: Run, turns: Sequence[Seen], evaluators: Sequence[Evaluator]
) -> Iterator[Finding]:
    if run.error or not turns:
        why = "took too long" if str(run.error).startswith("TimeoutError") else "crashed"
        yield Finding("target", 0, "fail", f"the case {why}: {str(run.error).splitlines()[0]}")
        return
    for evaluator in evaluators:
        name = evaluator.__name__
        try:
            for number, seen in enumerate(turns, 1):
                yield from [Finding(name, number, w.verdict, w.why) for w in evaluator(seen)]
        except Exception as error:  # to LangSmith a crash is a score that is missing
            why = f"the evaluator crashed ({type(error).__name__}: {error})"
            yield Finding(name, 0, "fail", why)


def _feedback(evaluator: Evaluator, findings: Sequence[Finding]) -> dict[str, Any]:
    """What one evaluator says of a run, as LangSmith keeps it. A crash is no pass of any."""
    own = [each for each in findings if each.evaluator in (evaluator.__name__, "target")]
    return {
        "key": evaluator.__name__,
        "score": int(not own),
        "value": worst(each.verdict for each in own),
        "comment": "; ".join(each.why for each in own) or None,
    }


def _outcome(run: Run, case: str, number: int, findings: list[Finding], stage: Stage) -> Outcome:
    turns = (run.outputs or {}).get("turns", [])
    kinds = {(turn["report"]["error"] or {}).get("kind") for turn in turns}
    asked = stage.settings.provider != "offline"  # the offline model has no such excuse
    outside = str(run.error).startswith("OverCap") or (asked and kinds & set(OUTSIDE))
    verdict: Fate = "trouble" if outside else worst(each.verdict for each in findings)
    seconds = (run.end_time - run.start_time).total_seconds() if run.end_time else 0
    return Outcome(case, number, verdict, findings, round(seconds, 3), turns)
