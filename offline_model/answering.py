"""The final message: words and templates in the form that the request asks for, never a value."""

import json
import re
from dataclasses import dataclass
from typing import Any

from offline_model.conversation import Call, Conversation
from offline_model.lexicon import Lexicon
from offline_model.reading import Reading
from offline_model.schemas import fitted

FIELD = re.compile(r"\{(\w+)\}")
REQUIRED = re.compile(r"Card placeholders: required ([^;.]*)")
IN_WORDS = re.compile(r"\bone JSON object\b", re.IGNORECASE)


@dataclass(frozen=True)
class Situation:
    """All that the final text depends on.

    `facets` are what was asked of each call; `left_out` are calls that only served to find others.
    `lacking` are the sentences on what is wanted and cannot be done, or not yet; `stuck` is that no
    tool tells anything of what was asked, `lost` that no order was found to hold it; `deeds` are
    the names of the tools that do something.
    """

    conversation: Conversation
    lexicon: Lexicon
    reading: Reading
    facets: dict[str, frozenset[str]]
    left_out: list[str]
    stuck: bool
    lost: bool
    lacking: list[str]
    deeds: frozenset[str]

    @property
    def shown(self) -> list[Call]:
        calls = self.conversation.turns[-1].calls
        return [call for call in calls if call.call_id not in self.left_out]

    def say(self, name: str) -> str:
        """A sentence of the lexicon; where it has several they take turns."""
        choices = self.lexicon.says.get(name, [""])
        return choices[(len(self.conversation.turns) - 1) % len(choices)]


def final_text(situation: Situation) -> str:
    """JSON by the request's schema, or by the one that its instructions state; else prose."""
    answer = _answer(situation)
    schema = situation.conversation.schema
    if schema is not None:
        return json.dumps(fitted(schema, answer), ensure_ascii=False)
    if IN_WORDS.search(situation.conversation.instructions):
        return json.dumps(answer, ensure_ascii=False)
    return _prose(answer, situation)


def _answer(situation: Situation) -> dict[str, Any]:
    shown, reading = situation.shown, situation.reading
    honest = [situation.say(name) for name in _lacking(situation)]
    names = ["language"] if reading.unread else _opening(situation)
    said = [situation.say(name) for name in (reading.tone, *names)]
    return {
        "locale": situation.lexicon.locale,
        "opening": " ".join(filter(None, said if shown else said + honest)),
        "cards": [{"call_id": call.call_id, "text": _card(call, situation)} for call in shown],
        "closing": " ".join(honest) if shown else "",
    }


def _lacking(situation: Situation) -> list[str]:
    """What is said of what was asked for as well, or only, and is not done here."""
    return [*situation.lacking, *(f"not_{name}" for name in situation.reading.beside)]


def _opening(situation: Situation) -> list[str]:
    """Which of the lexicon's sentences fits what was asked and what came of it."""
    shown, reading = situation.shown, situation.reading
    if shown:
        read = [call for call in shown if call.name not in situation.deeds]
        return ["which"] if situation.lost else _opening_of(read)
    if reading.asks and situation.stuck:
        return ["no_way"]
    if _lacking(situation):
        return []
    if reading.talk and not reading.asks:
        return [reading.talk]
    return ["outside" if reading.foreign else "which"]


def _opening_of(shown: list[Call]) -> list[str]:
    """Nothing where the cards speak for themselves."""
    failed = [call.error["kind"] for call in shown if call.error]
    if set(failed) - {"not_found"}:
        return ["failed" if len(failed) == len(shown) else "mixed"]
    if shown and not failed and shown[-1].data and all(v == [] for v in shown[-1].data.values()):
        return ["no_orders"]
    return ["found"] if len(shown) - len(failed) > 1 else []


def _card(call: Call, situation: Situation) -> str:
    """A template for one result; empty where it failed or its tool needs no words of ours."""
    data = call.data
    if data is None:
        return ""
    filled = {name for name, value in data.items() if value not in (None, "", [])}
    required = _required(call.name, situation)
    words = situation.lexicon.data["cards"].get(call.name)
    if words is None:
        return ""
    beside = any(call.given == other.given for other in situation.shown if other is not call)
    if beside and "beside" in words:
        words = {**words, "head": words["beside"], "tail": ""}
    text = _composed(words, situation.facets[call.call_id], filled | set(required))
    missing = [f"{{{name}}}" for name in required if f"{{{name}}}" not in text]
    text = " ".join([*missing, text]).strip()
    return text if set(FIELD.findall(text)) <= set(data) else ""


def _composed(words: dict[str, Any], facets: frozenset[str], filled: set[str]) -> str:
    parts = words.get("parts", {})
    chosen = [sentence for facet in parts if facet in facets for sentence in parts[facet]]
    middle = chosen if chosen or facets & {"status", "where"} else words["full"]
    sentences = [words["head"], *middle, words["tail"]]
    return " ".join(s for s in sentences if s and set(FIELD.findall(s)) <= filled)


def _required(name: str, situation: Situation) -> list[str]:
    tool = situation.conversation.tool(name)
    found = REQUIRED.search(tool.description) if tool else None
    return FIELD.findall(found[1]) if found else []


def _prose(answer: dict[str, Any], situation: Situation) -> str:
    cards = [
        _filled(c["text"], call.data or {})
        for c, call in zip(answer["cards"], situation.shown, strict=True)
    ]
    return "\n".join(filter(None, [answer["opening"], *cards, answer["closing"]]))


def _filled(text: str, values: dict[str, Any]) -> str:
    return FIELD.sub(lambda field: _said(values.get(field[1])), text)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_said(entry) for entry in value)
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    return str(value)
