"""What the agent says and how values look, one TOML file a language; English is the fallback."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable
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

    def sentence(self, section: str, key: str) -> str | None:
        """A sentence of the file, None where it has none."""
        text = self.data.get(section, {}).get(key)
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

    def facts(self, text: str, *, in_card: bool = False, done: Iterable[str] = ()) -> list[str]:
        """The words in a text that state a fact.

        in_card: whether these are the words of a card, beside its values, or free words around it.
        done: the tools whose deeds may be claimed.
        """
        plain = plainly(text)
        licensed = {
            word
            for tool in done
            if tool in self._deeds
            for word in self._deeds[tool].findall(plain)
        }
        claims = self._card_claims if in_card else self._free_claims
        return [word for word in claims.findall(plain) if word not in licensed]

    @cached_property
    def _free_claims(self) -> re.Pattern[str]:
        return self._claims("free")

    @cached_property
    def _card_claims(self) -> re.Pattern[str]:
        return self._claims("card")

    def _claims(self, where: str) -> re.Pattern[str]:
        check = self.data["check"]
        words = [
            word for key in ("numbers", "dates", "money", "status", where) for word in check[key]
        ]
        return _any_of([*words, *(word for deeds in check["deeds"].values() for word in deeds)])

    @cached_property
    def _deeds(self) -> dict[str, re.Pattern[str]]:
        return {tool: _any_of(words) for tool, words in self.data["check"]["deeds"].items()}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(_bounded, longest_first)))


def _bounded(word: str) -> str:
    pattern = re.escape(plainly(word)).replace(r"\*", r"\w*")
    return rf"(?<!\w){pattern}(?!\w)" if word[0].isalnum() else pattern


def clean(text: str) -> str:
    """A value from outside, on one line and without characters that hide or reorder text."""
    shown = (" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    return " ".join("".join(c for c in shown if unicodedata.category(c) != "Cf").split())


def plainly(text: str) -> str:
    """Text as the check reads it: no hidden characters, no look-alike widths, no case."""
    return clean(unicodedata.normalize("NFKC", text)).casefold().replace("’", "'")


@cache
def locale(name: str) -> Locale:
    """The language of a BCP 47 tag such as "en" or "pt-BR"; English where it has no file."""
    language = re.split(r"[-_]", name.strip().lower())[0]
    known = language if language in available() else DEFAULT
    english = _read(DEFAULT)
    return Locale(known, english if known == DEFAULT else _laid_over(english, _read(known)))


@cache
def available() -> frozenset[str]:
    return frozenset(path.stem for path in FOLDER.glob("*.toml"))


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: _laid_over(below[key], value) if isinstance(value, dict) and key in below else value
        for key, value in above.items()
    }
    return {**below, **both}


for _name in available():  # at import: a server refuses to read folders while it serves
    locale(_name)
