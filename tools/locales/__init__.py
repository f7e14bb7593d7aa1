"""What the agent says and how values look, one TOML file a language; English is the fallback.

`docs/languages.md` says what stands in a file, and how another language is added.
"""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import babel
from babel.dates import format_date, format_datetime
from babel.numbers import format_currency, format_decimal

FOLDER = Path(__file__).parent
DEFAULT = "en"


@dataclass(frozen=True)
class Locale:
    """One language. `data` is its file, laid over the English one so that nothing is missing."""

    name: str
    data: dict[str, Any]

    @cached_property
    def babel(self) -> babel.Locale:
        return babel.Locale.parse(self.name)

    def sentence(self, section: str, key: str, data: object = None) -> str | None:
        """A sentence of the file, None where it has none.

        A table is a sentence in several forms: `by` names the field of `data` whose number (or
        length) chooses among the plural categories of the language; `none` is for nothing at all,
        and `=1` for exactly that number. A field that is one of a few words chooses by that word.
        """
        text = self.data.get(section, {}).get(key)
        while isinstance(text, dict):
            value = getattr(data, text["by"], None)
            count = _count(value)
            exact = str(value) if isinstance(value, str) else f"={count}" if count else "none"
            form = exact if exact in text else self.babel.plural_form(count)
            text = text.get(form, text["other"])
        return text if isinstance(text, str) else None

    def enumeration(self, field: str, value: str) -> str:
        name = self.data.get("enums", {}).get(field, {}).get(value)
        return name if isinstance(name, str) else value.replace("_", " ")

    def value(self, value: object, currency: str | None = None) -> str:
        """A value as this language writes it; money where a currency stands beside the number."""
        match value:
            case None:
                return str(self.data["values"]["none"])
            case bool():
                return str(self.data["values"]["yes" if value else "no"])
            case Decimal() if currency:
                return format_currency(value, currency, locale=self.babel)
            case int() | float() | Decimal():
                return format_decimal(value, locale=self.babel)
            case datetime():
                return format_datetime(value, "long", locale=self.babel)
            case date():
                return format_date(value, "long", locale=self.babel)
            case _:
                return clean(str(value))


def _count(value: object) -> int | float | Decimal:
    match value:
        case None:
            return 0
        case int() | float() | Decimal():
            return value
        case list() | tuple():
            return len(value)
        case _:
            return 1


def clean(text: str) -> str:
    """A value from outside, on one line and without characters that hide or reorder text."""
    if text.isprintable():  # nothing of the kind is in it: the usual case, at a tenth of the price
        return " ".join(text.split())
    shown = (" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    return " ".join("".join(c for c in shown if unicodedata.category(c) != "Cf").split())


def plainly(text: str) -> str:
    """Text as the check reads it: no hidden characters, no look-alike widths, no case."""
    return clean(unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")


def unmarked(text: str) -> str:
    """Text without its accents: people leave them out."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


def locale(name: str) -> Locale:
    """The language of a BCP 47 tag such as "en" or "pt-BR"; English where it has no file."""
    return _locale(_language(name) if has_file(name) else DEFAULT)


def has_file(name: str) -> bool:
    return _language(name) in available()


def _language(name: str) -> str:
    return re.split(r"[-_]", name.strip().lower())[0]


def guess(text: str) -> str | None:
    """The language that a text seems to be in, by what each file says of its own; None: no idea."""
    plain = plainly(text)
    words = set(re.findall(r"\w+", unmarked(plain)))
    scores = {name: _score(plain, words, name) for name in sorted(available())}
    best = max(scores, key=lambda name: (scores[name], name == DEFAULT))
    return best if scores[best] else None


def _score(plain: str, words: set[str], language: str) -> int:
    own, letters, never = _signs(language)
    return 0 if never & set(plain) else len(words & own) + len(letters.findall(plain))


@cache
def _signs(language: str) -> tuple[set[str], re.Pattern[str], set[str]]:
    """Words and letters of a language, and letters that it never has."""
    signs = _read(language).get("guess", {})
    letters = re.compile(f"[{signs['letters']}]" if signs.get("letters") else "(?!)")
    return set(map(unmarked, signs.get("words", ()))), letters, set(signs.get("never", ""))


@cache
def available() -> frozenset[str]:
    return frozenset(path.stem for path in FOLDER.glob("*.toml"))


@cache
def _locale(language: str) -> Locale:
    below = _read(DEFAULT)
    return Locale(language, below if language == DEFAULT else _laid_over(below, _read(language)))


@cache
def _read(language: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Sections are filled up from below; a sentence in several forms is one thing, left alone."""
    both = {
        key: _laid_over(below[key], value) if _sections(below.get(key), value) else value
        for key, value in above.items()
    }
    return {**below, **both}


def _sections(*values: object) -> bool:
    return all(isinstance(value, dict) and "by" not in value for value in values)


for _name in available():  # at import: a server refuses to read folders while it serves
    locale(_name)
