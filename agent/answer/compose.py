"""The answer: the model's words where they are allowed, the shop's values everywhere else."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import ValidationError
from typing_extensions import TypedDict

from agent.answer import draft as drafts
from agent.answer.cards import Record, Spoken, records
from agent.answer.claims import deeds
from agent.answer.draft import Draft
from agent.answer.render import (
    card_text,
    fields_in,
    fill,
    literal_words,
    plain_text,
    translated,
)
from agent.answer.vocabulary import card_allows
from agent.answer.words import FreeWords
from agent.calls import Failure, ToolCall, ToolError, ToolResult
from agent.state import Results
from tools.locales import DEFAULT, Locale, clean, has_file, locale, plainly
from tools.tool import Tool, Translated, is_verbatim

LIMIT = 1000  # characters of one card's text, and of the words before and after the cards
# What was meant for a program, not for the customer.
NO_PROSE = re.compile(r"""[{\[`"<]|(?:null|none|nil|true|false|undefined|nan)\W*$""", re.IGNORECASE)


class Card(TypedDict):
    """The part of an answer that speaks of one result; `values` are the result's own."""

    call_id: str
    tool: str
    subject: str
    text: str
    values: dict[str, Any]
    source: Literal["model", "default"]


class Answer(TypedDict):
    turn: int
    status: Literal["answered", "with_person", "failed"]
    message: str
    locale: str
    cards: list[Card]
    error: Failure | None


@dataclass(frozen=True)
class Material:
    """All that an answer is made of.

    draft: the model's last message, None when there is none (`failure`, or the round limit).
    earlier: ok results of earlier turns by call id, for cards that speak of them.
    named: order ids that the thread has spoken of before.
    news: results of writes of earlier turns that the customer has not been told yet.
    language: of the question, as far as it can be told.
    with_person: the thread is with a person now. silent: it was before, so only news is told.
    limit: which sentence says why there is no draft, where nothing failed.
    """

    turn: int
    question: str
    draft: str | None
    calls: Sequence[ToolCall]
    results: Results
    failure: Failure | None = None
    earlier: Mapping[str, ToolResult] = field(default_factory=dict)
    named: Sequence[str] = ()
    news: Sequence[ToolResult] = ()
    language: str = DEFAULT
    with_person: bool = False
    silent: bool = False
    limit: str = "limit"


@dataclass(frozen=True)
class Composer:
    """Composes answers for the tools of one graph."""

    tools: Mapping[str, Tool]

    def compose(self, material: Material) -> Answer:
        draft = drafts.read(material.draft) if material.draft is not None else None
        if draft is not None and not has_file(draft.locale):
            draft = drafts.wordless(draft)  # nothing here can check what it says
        speech = locale(draft.locale if draft else material.language)
        spoken = Spoken(records(material.calls, material.results), self.tools)
        cards = _Binder(self.tools, speech, spoken, material).cards(draft)
        parts = [card["text"] for card in cards]
        if draft is not None:
            opening, closing = self._free_words(draft, speech, spoken, material)
            parts = [*opening, *parts, *closing]
        elif material.draft is not None and not spoken.records:
            parts = self._prose(clean(material.draft[: drafts.LONGEST]), speech, material)
        parts += self._ending(material, speech)
        return Answer(
            turn=material.turn,
            status=_status(material),
            message="\n".join(parts) or self._nothing(speech, material),
            locale=speech.name,
            cards=cards,
            error=material.failure,
        )

    def _free_words(
        self, draft: Draft, speech: Locale, spoken: Spoken, material: Material
    ) -> tuple[list[str], list[str]]:
        opening, closing = clean(draft.opening), clean(draft.closing)
        if not opening and not closing:
            return [], []
        check = self._check(speech, material, spoken, [card.call_id for card in draft.cards])
        return _allowed(opening, check), _allowed(closing, check)

    def _prose(self, text: str, speech: Locale, material: Material) -> list[str]:
        """The model's own words instead of a draft, where free words would be shown too."""
        return [] if NO_PROSE.match(text) else _allowed(text, self._check(speech, material, None))

    def _check(
        self, speech: Locale, material: Material, spoken: Spoken | None, shown: Sequence[str] = ()
    ) -> FreeWords:
        told = [record.result for record in spoken.records] if spoken else []
        named = () if any(result["status"] == "ok" for result in told) else material.named
        old = [each for each in shown if not (spoken and spoken.find(each))]
        told += [material.earlier[each] for each in old if each in material.earlier]
        told += material.news
        return FreeWords.of(speech, [material.question, *named], deeds(told))

    def _nothing(self, speech: Locale, material: Material) -> str:
        return "" if material.silent else _required(speech, "answer", "nothing")

    def _ending(self, material: Material, speech: Locale) -> list[str]:
        if material.silent:
            return []
        if material.failure is not None:
            wrote = any(
                _writes(result, self.tools)
                for result in (*material.results.values(), *material.news)
            )
            kinds = ("written",) if wrote else (material.failure["kind"], "model_unavailable")
            return [_required(speech, "turn", *kinds)]
        if material.draft is None:
            return [_required(speech, "answer", material.limit)]
        return []


@dataclass(frozen=True)
class _Binder:
    """Binds each card to the one result that its call id names."""

    tools: Mapping[str, Tool]
    speech: Locale
    spoken: Spoken
    material: Material

    @cached_property
    def _said(self) -> str:
        """By the customer or the shop; a failure names nothing that only the model has said."""
        ok = [json.dumps(r.result["data"]) for r in self.spoken.records if r.ok]
        written = [result["subject"] for result in self.material.news]
        said = [self.material.question, *self.material.named, *written, *ok]
        return _squeezed(" ".join(said))

    def cards(self, draft: Draft | None) -> list[Card]:
        """The news, the model's cards in its order, a default card for every other result."""
        cards: dict[str, Card] = {}
        for card in draft.cards if draft else ():
            found = self._find(card.call_id)
            if found and found[0] not in cards:
                cards[found[0]] = self._card(found[1], clean(card.text))
        rest = [r for r in self.spoken.records if _key(r) not in cards]
        must = [r for r in rest if not (r.ok and self._optional(r))]
        silent = draft is None and not must and not cards
        for record in rest if silent else must:
            cards[_key(record)] = self._card(record.result, "")
        news = [r for r in self.material.news if f"earlier/{r['call_id']}" not in cards]
        return [*(self._card(result, "") for result in news), *cards.values()]

    def _find(self, call_id: str) -> tuple[str, ToolResult] | None:
        if record := self.spoken.find(call_id):
            return _key(record), record.result
        earlier = self.material.earlier.get(call_id)
        if earlier is not None and self._still_fits(earlier):
            return f"earlier/{call_id}", earlier
        return None

    def _still_fits(self, result: ToolResult) -> bool:
        """Whether a kept result is one that today's tool of that name could have returned."""
        tool = self.tools.get(result["tool"])
        if tool is None or tool.returns is None:
            return tool is not None
        try:
            tool.returns.model_validate(result["data"])
        except ValidationError:
            return False
        return True

    def _optional(self, record: Record) -> bool:
        tool = self.tools.get(record.result["tool"])
        return tool is not None and tool.card == "optional"

    def _card(self, result: ToolResult, template: str) -> Card:
        if result["status"] == "error":
            return _made(result, self._failure(result), {}, "default")
        tool = self.tools.get(result["tool"])
        if tool is None or tool.returns is None:
            return _made(result, plain_text(result["data"]), {}, "default")
        data = tool.returns.model_validate(result["data"])
        if isinstance(data, Translated):
            data = data.spoken(self.speech.name)
        own = self.speech.sentence("cards", tool.name, data) or tool.sentence
        usable = self._usable(template, own, tool)
        text = template if usable else own
        values = data.model_dump(mode="json", include=set(fields_in(text)))
        try:
            shown = _tidy(card_text(text, data, self.speech))
        except (ArithmeticError, ValueError):  # a number that no language has a form for
            error = ToolError(kind="service_error", message="A value cannot be shown.")
            return _made(result, self._failure({**result, "error": error}), {}, "default")
        return _made(result, shown, values, "model" if usable else "default")

    def _usable(self, template: str, own: str, tool: Tool) -> bool:
        assert tool.returns is not None
        fields = set(fields_in(template))
        literal = literal_words(template)
        about = tool.subject or next(iter(tool.required), "")
        return (
            bool(fields)
            and len(template) <= LIMIT
            and set(tool.required) <= fields <= tool.returns.model_fields.keys()
            and not {"{", "}"} & set(literal)
            and not (literal.strip() and any(is_verbatim(tool.returns, name) for name in fields))
            and card_allows(template, own, about, self.speech)
        )

    def _failure(self, result: ToolResult) -> str:
        kind, writes = result["error"]["kind"], _writes(result, self.tools)
        if writes and result["status"] == "ok":
            kind = "not_kept"  # it did not fail: its values are what cannot be shown
        subject = result["subject"] if _squeezed(result["subject"]) in self._said else ""
        form = kind if subject else f"{kind}_unnamed" if result["subject"] else f"{kind}_bare"
        section = "write_error" if writes else "error"
        sentence = _required(self.speech, section, form, kind, "other")
        what, subject = self._what(result, subject), self.speech.value(subject)
        words = {"subject": subject, "message": translated(result["error"]["message"], self.speech)}
        return fill(sentence, {**words, "what": fill(what, words)})

    def _what(self, result: ToolResult, subject: str) -> str:
        """What a call was about, in words; a name that the model made up is not repeated."""
        general = _required(
            self.speech, "what", "one_change" if _writes(result, self.tools) else "one_thing"
        )
        if result["tool"] not in self.tools:
            return general
        what = self.speech.sentence("what", result["tool"]) or result["tool"].replace("_", " ")
        return general if "{subject}" in what and not subject else what


def _writes(result: ToolResult, tools: Mapping[str, Tool]) -> bool:
    tool = tools.get(result["tool"])
    return tool is not None and tool.writes


def _status(material: Material) -> Literal["answered", "with_person", "failed"]:
    if material.failure:
        return "failed"
    return "with_person" if material.with_person else "answered"


def _made(
    result: ToolResult, text: str, values: dict[str, Any], source: Literal["model", "default"]
) -> Card:
    return Card(
        call_id=result["call_id"],
        tool=result["tool"],
        subject=result["subject"],
        text=text,
        values=values,
        source=source,
    )


def _allowed(words: str, check: FreeWords) -> list[str]:
    return [words] if words and len(words) <= LIMIT and check.allows(words) else []


def _squeezed(text: str) -> str:
    """Letters and digits alone, in which "a 17" holds "A-17"."""
    return "".join(c for c in plainly(text) if c.isalnum())


def _tidy(text: str) -> str:
    """A list that stands on lines of its own leaves the sentence's full stop behind."""
    lines = [line.rstrip() for line in text.strip().split("\n")]
    return "\n".join(line for line in lines if line.strip(" .。") or not line)


def _key(record: Record) -> str:
    return str(record.place)


def _required(speech: Locale, section: str, *keys: str) -> str:
    """The first sentence that the language (or English, which lies below it) has."""
    return next(text for key in keys if (text := speech.sentence(section, key)) is not None)
