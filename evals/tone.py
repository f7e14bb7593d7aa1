"""How the answers sound to a model: a figure beside the verdict, and never part of it."""

import asyncio
from collections.abc import Sequence
from statistics import mean
from typing import Any

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


class Judge:
    """Raises Problem where `model` is no PROVIDER:NAME, or its key is missing."""

    def __init__(self, model: str) -> None:
        if ":" not in model:
            raise Problem("--tone takes PROVIDER:NAME, such as openai:gpt-5. No case was run.")
        self._model = connect(Settings(model=model))
        self._free = asyncio.Semaphore(AT_ONCE)

    async def line(self, outcomes: Sequence[Outcome]) -> str:
        """What a person reads of it."""
        turns = [turn for outcome in outcomes if outcome.repeat == 1 for turn in outcome.turns]
        told = await asyncio.gather(*map(self._rate, turns), return_exceptions=True)
        rates = [each for each in told if isinstance(each, int)]
        if not rates:
            return "tone: the model did not rate it (no part of the verdict)"
        counted = f"{mean(rates):.1f} of 5 on average, {min(rates)} at worst"
        return (
            f"tone: {counted}, {len(rates)} of {len(turns)} answers rated (no part of the verdict)"
        )

    async def _rate(self, turn: dict[str, Any]) -> int | None:
        async with self._free:
            asked = ASK.format(ask=turn["ask"], message=turn["report"]["message"])
            said = (await self._model.ainvoke(asked)).text.strip()
        return int(said) if said in ("1", "2", "3", "4", "5") else None
