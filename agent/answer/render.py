"""Templates filled with the values of one result, and nothing else."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_origin

from pydantic import BaseModel

from tools.locales import Locale, clean, locale
from tools.tool import is_verbatim

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
FILLED = re.compile(PLACEHOLDER.pattern + r"(\.?)")
TEXT_LIMIT = 4000
MESSAGE_LIMIT = 1000  # characters of what is said of a failure


def fill(template: str, values: Mapping[str, str]) -> str:
    """Puts each value in its placeholder in one pass: braces inside a value stay what they are.

    A value that ends in a full stop ("2026 г.") is not given another one.
    """

    def put(match: re.Match[str]) -> str:
        value, stop = values[match[1]], match[2]
        return value if value.endswith(".") else value + stop

    return FILLED.sub(put, template)


def fields_in(template: str) -> list[str]:
    return PLACEHOLDER.findall(template)


def literal_words(template: str) -> str:
    """The template without its placeholders: all that the model typed itself."""
    return PLACEHOLDER.sub(" ", template)


def card_text(template: str, data: BaseModel, locale: Locale) -> str:
    """The card of one result. Raises KeyError when the template names a field that it lacks."""
    values = {name: _shown(name, data, locale) for name in fields_in(template)}
    return fill(template, values)


def plain_text(data: Any) -> str:
    """The card of a tool that declares no fields: its output, kept to one readable piece."""
    return clean(str(data))[:TEXT_LIMIT]


def translated(message: str, speech: Locale) -> str:
    """What is said of a failure, in a language; as it is where the language has no sentence for it.

    A word of the shop's in it, such as {status}, is translated as it is in a card.
    """
    shown = clean(message)[:MESSAGE_LIMIT]
    for pattern, sentence in _messages(speech.name):
        if found := pattern.fullmatch(shown):
            return fill(sentence, {k: _word(k, v, speech) for k, v in found.groupdict().items()})
    return shown


def _word(name: str, value: str, speech: Locale) -> str:
    words: dict[str, str] = speech.data["enums"].get(name, {})
    return words.get(value.replace(" ", "_"), value)


@cache
def _messages(language: str) -> list[tuple[re.Pattern[str], str]]:
    """The sentences of a language, each with the pattern of the English one that it stands for."""
    every = locale(language).data.get("messages", {})
    return [(re.compile(_pattern(english)), sentence) for english, sentence in every.items()]


def _pattern(template: str) -> str:
    parts = PLACEHOLDER.split(template)
    named = [f"(?P<{part}>.+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts)]
    return "".join(named)


def _shown(name: str, data: BaseModel, locale: Locale) -> str:
    field = type(data).model_fields[name]
    value = getattr(data, name)
    if isinstance(value, list | tuple):
        return _listed([_entry(entry, locale) for entry in value], locale)
    if isinstance(value, str) and get_origin(field.annotation) is Literal:
        return locale.enumeration(name, value)
    if is_verbatim(type(data), name):
        return str(value)
    return locale.value(value, getattr(data, "currency", None))


def _entry(entry: object, locale: Locale) -> str:
    if not isinstance(entry, BaseModel):
        return locale.value(entry)
    line = locale.sentence("lines", type(entry).__name__, entry)
    return card_text(line or str(getattr(type(entry), "line", "")), entry, locale)


def _listed(entries: list[str], locale: Locale) -> str:
    """None, one in the sentence, or several on lines of their own."""
    if not entries:
        return locale.value(None)
    if len(entries) == 1:
        return entries[0]
    if all(len(entry) <= 20 for entry in entries):
        return str(locale.data["values"]["comma"]).join(entries)
    return "".join(f"\n- {entry}" for entry in entries) + "\n"
