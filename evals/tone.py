"""How the answers sound to a model: a figure beside the verdict, and never part of it."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from agent.problems import Problem
from agent.settings import Settings
from agent.wire.connect import connect
from evals.outcomes import Outcome

ASK = """A customer asked a shop: {ask}
Its agent answered: {message}

Rate the tone of the answer, and nothing else of it, from 1 (rude or muddled) to 5 (kind and plain).
Say the number alone."""
AT_ONCE = 4
TOKENS = {"input_tokens": 2000, "output_tokens": 500}  # that one answer may take


def judge(model: str) -> BaseChatModel:
    """Raises Problem where `model` is no PROVIDER:NAME, or its key is missing."""
    if ":" not in model:
        raise Problem("--tone takes PROVIDER:NAME, such as openai:gpt-5. No case was run.")
    return connect(Settings(model=model))


async def line(judge: BaseChatModel, outcomes: Sequence[Outcome]) -> str:
    """What a person reads of it."""
    turns = [turn for outcome in outcomes if outcome.repeat == 1 for turn in outcome.turns]
    asked: list[Any] = [
        ASK.format(ask=turn["ask"], message=turn["report"]["message"]) for turn in turns
    ]
    told = await judge.abatch(asked, {"max_concurrency": AT_ONCE}, return_exceptions=True)
    said = [each.text.strip() for each in told if isinstance(each, AIMessage)]
    rates = [int(each) for each in said if each in ("1", "2", "3", "4", "5")]
    if not rates:
        return "tone: the model did not rate it (no part of the verdict)"
    counted = f"{mean(rates):.1f} of 5 on average, {min(rates)} at worst"
    return f"tone: {counted}, {len(rates)} of {len(turns)} answers rated (no part of the verdict)"
