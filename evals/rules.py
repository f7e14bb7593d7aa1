"""What `gate.toml` says."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt

from evals.case import Model

FILE = Path(__file__).parent / "gate.toml"

Share = Annotated[float, Field(ge=0, le=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]


class Rate(Model):
    offline: Share
    model: Share


class Statistics(Model):
    confidence: Inside
    chance: Annotated[float, Field(ge=0.0001, le=0.5)]
    power: Inside


class Limits(Model):
    seconds: PositiveFloat
    input_tokens: PositiveInt
    output_tokens: PositiveInt


class Rules(Model):
    critical: tuple[str, ...]
    rate: Rate
    statistics: Statistics
    limits: Limits


@cache
def rules() -> Rules:
    """Raises OSError or ValueError for a file with a mistake."""
    return Rules.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))
