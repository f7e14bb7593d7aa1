"""How answers may be worded, one file a language: in more ways than our own sentences use."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from evals.case import Model

FOLDER = Path(__file__).parent
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))

LETTER = "[0-9A-Za-zÀ-ɏЀ-ӿ_]"  # of scripts that put spaces between words


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """One of the phrases; in them `*` stands for any ending, `…` for a few words between."""
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile("|".join(map(bounded, longest_first)), re.IGNORECASE)


def bounded(phrase: str) -> str:
    """A phrase that is no part of a longer word or number. Chinese words have no such borders."""
    pattern = re.escape(phrase).replace(r"\*", f"{LETTER}*").replace("…", "[^.\n]{0,60}?")
    before = f"(?<!{LETTER})" if _has_borders(phrase[0]) else ""
    after = f"(?!{LETTER})" if _has_borders(phrase[-1]) else ""
    if phrase[0].isdigit():
        before += r"(?<!\d[.,])"
    if any(map(str.isdigit, phrase)):
        before += r"(?<!\s[-−])"  # a sum with a minus is another
    if phrase[-1].isdigit():
        after += r"(?![.,]\d)"
    return before + pattern + after


def _has_borders(character: str) -> bool:
    return not character.isalnum() or re.match(LETTER, character) is not None


Phrases = Annotated[re.Pattern[str], BeforeValidator(any_of)]


class Words(Model):
    """The patterns of one language, of which a file lists the phrases.

    script: of its letters. common: words that hardly any sentence is without. not_found and
    unchecked: how an answer says that there is no such order, and that it could not find out.
    first and last: to arrive. negation: what turns a status into its contrary, before it.
    deeds: how an answer says what became of a change. idle: what only sounds like a status.
    hedges: what weakens a value. units: of what is no number of days.
    """

    script: str
    common: Phrases
    not_found: Phrases
    unchecked: Phrases
    first: Phrases
    last: Phrases
    negation: Annotated[Phrases, AfterValidator(lambda said: _within(r"(?:{})\s*$", said))]
    hedges: Phrases
    units: Annotated[Phrases, AfterValidator(lambda said: _within(r"[\s-]*(?:{})", said))]
    idle: tuple[str, ...]
    deeds: dict[str, Phrases]
    statuses: dict[str, Phrases]


def _within(frame: str, said: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(frame.format(said.pattern), said.flags)


@cache
def words(language: str) -> Words:
    return Words(**tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8")))
