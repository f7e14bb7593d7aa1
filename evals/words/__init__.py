"""How answers may be worded, one file a language: in more ways than our own sentences use."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))

LETTER = "[0-9A-Za-zÀ-ɏЀ-ӿ_]"  # of scripts that put spaces between words


@dataclass(frozen=True)
class Words:
    """The patterns of one language.

    script: of its letters. common: words that hardly any sentence is without. not_found and
    unchecked: how an answer says that there is no such order, and that it could not find out.
    first and last: to arrive. negation: what turns a status into its contrary, before it.
    deeds: how an answer says what became of a change. idle: what only sounds like a status.
    hedges: what weakens a value. units: of what is no number of days.
    """

    script: str
    common: re.Pattern[str]
    not_found: re.Pattern[str]
    unchecked: re.Pattern[str]
    first: re.Pattern[str]
    last: re.Pattern[str]
    negation: re.Pattern[str]
    hedges: re.Pattern[str]
    units: re.Pattern[str]
    idle: tuple[str, ...]
    deeds: dict[str, re.Pattern[str]]
    statuses: dict[str, re.Pattern[str]]


@cache
def words(language: str) -> Words:
    data = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    patterns = ("common", "not_found", "unchecked", "first", "last", "hedges")
    return Words(
        script=data["script"],
        idle=tuple(data["idle"]),
        negation=re.compile(rf"(?:{any_of(data['negation']).pattern})\s*$", re.IGNORECASE),
        deeds={deed: any_of(said) for deed, said in data["deeds"].items()},
        units=re.compile(rf"[\s-]*(?:{any_of(data['units']).pattern})", re.IGNORECASE),
        statuses={status: any_of(said) for status, said in data["statuses"].items()},
        **{name: any_of(data[name]) for name in patterns},
    )


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
