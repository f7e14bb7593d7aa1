"""The forms in which a person may read a value: more than one, as no answer has to use ours."""

import unicodedata
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import product

from babel.dates import format_date, format_skeleton
from babel.numbers import format_currency, format_decimal, get_currency_symbol

from evals.truth import Money, Value

LOCALES = {"en": ("en_US", "en_GB"), "ru": ("ru",), "zh": ("zh",), "es": ("es",)}
DAYS = ("full", "long", "medium", "short")
PARTS_OF_DAYS = ("yMd", "yMMMMd", "yMMMd", "MMMMd", "MMMd", "yMMMEd", "MMMEd")


def plain(text: str) -> str:
    """Without the differences that no reader sees: widths, kinds of spaces and of apostrophes."""
    lines = unicodedata.normalize("NFKC", text).replace("’", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


@cache
def forms(value: Value, language: str) -> frozenset[str]:
    """All forms of a value in a language, and in English, which may stand in for it.

    In plain small letters, as they are looked for.
    """
    locales = [*LOCALES[language], *LOCALES["en"]]
    match value:
        case Money(amount, currency):
            found = {form for name in locales for form in _money(amount, currency, name)}
        case date():
            found = {form for name in locales for form in _day(value, name)} | {value.isoformat()}
        case _:
            found = {str(value)}
    return frozenset(plain(form).lower() for form in found)


def _day(day: date, locale: str) -> Iterator[str]:
    yield from (format_date(day, style, locale=locale) for style in DAYS)
    yield from (format_skeleton(parts, day, locale=locale) for parts in PARTS_OF_DAYS)


def _money(amount: Decimal, currency: str, locale: str) -> Iterator[str]:
    yield format_currency(amount, currency, locale=locale)
    yield format_currency(amount, currency, locale=locale, format_type="name")
    signs = {currency, *(get_currency_symbol(currency, name) for name in (locale, "en_US"))}
    patterns = ["#,##0.00", "0.00"] + ["#,##0"] * (amount == amount.to_integral())
    for number in {str(amount), *(format_decimal(amount, each, locale) for each in patterns)}:
        for sign, gap in product(signs, ("", " ")):
            yield from (f"{sign}{gap}{number}", f"{number}{gap}{sign}")
