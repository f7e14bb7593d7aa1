"""The same run as an experiment at LangSmith, over a data set that the case files keep in step.

What is sent are the cases, which are invented, and what the agent made of them.
"""

import os
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langsmith import Client
from langsmith.schemas import Dataset, Example

from agent.problems import Problem
from evals.case import Case

NAME = "support-agent evals"
ABOUT = "Kept in step from the files in evals/cases; edit those."


def client(lost: Callable[[Exception], None] = lambda error: None) -> Client:
    """As the environment says. Raises Problem where it holds no key.

    lost: is told of what the server did not take.
    """
    if not (os.environ.get("LANGSMITH_API_KEY") or os.environ.get("LANGCHAIN_API_KEY")):
        raise Problem("--upload needs LANGSMITH_API_KEY. No case was run.")
    return Client(tracing_error_callback=lost)


def in_step(at: Client, cases: Sequence[Case], *, whole: bool) -> dict[str, Example]:
    """The example of each case, created or brought up to date; whole: others are deleted."""
    held = at.has_dataset(dataset_name=NAME)
    make = at.read_dataset if held else partial(at.create_dataset, description=ABOUT)
    dataset: Dataset = make(dataset_name=NAME)
    there = {example.id: example for example in at.list_examples(dataset_id=dataset.id)}
    wanted = {case.name: example_of(case, dataset.id) for case in cases}
    new = [each for each in wanted.values() if each.id not in there]
    changed = [each for each in wanted.values() if there.pop(each.id, each).outputs != each.outputs]
    if new:
        created = [_fields(each, outputs="reference_outputs") for each in new]
        at.create_examples(dataset_id=dataset.id, examples=created)
    if changed:
        updates = [_fields(each, outputs="outputs") for each in changed]
        at.update_examples(dataset_id=dataset.id, updates=updates)
    if there and whole:
        at.delete_examples(list(there))
    return wanted


def _fields(example: Example, *, outputs: str) -> dict[str, Any]:
    """outputs: what they are called, which differs for a new example and a changed one."""
    return {"id": example.id, "inputs": example.inputs, outputs: example.outputs}


def example_of(case: Case, dataset: uuid.UUID) -> Example:
    """A case as LangSmith keeps it; its id in a data set is the same for ever."""
    return Example(
        id=uuid.uuid5(dataset, case.name),
        dataset_id=dataset,
        inputs={"case": case.name, "asks": [turn.ask for turn in case.turns]},
        outputs=case.model_dump(mode="json"),
    )
