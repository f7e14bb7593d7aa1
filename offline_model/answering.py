"""The final message: words and templates in the form that the request asks for, never a value."""

import json
import re
from typing import TYPE_CHECKING, Any

from offline_model.conversation import Call
from offline_model.schemas import fitted

if TYPE_CHECKING:
    from offline_model.planner import Situation

FIELD = re.compile(r"\{(\w+)\}")
REQUIRED = re.compile(r"Card placeholders: required ([^;.]*)")
IN_WORDS = re.compile(r"\bone JSON object\b", re.IGNORECASE)


def final_text(situation: "Situation") -> str:
    """JSON by the request's schema, or by the one that its instructions state; else prose."""
    answer = _answer(situation)
    schema = situation.conversation.schema
    if schema is not None:
        return json.dumps(fitted(schema, answer), ensure_ascii=False)
    if IN_WORDS.search(situation.conversation.instructions):
        return json.dumps(answer, ensure_ascii=False)
    return _prose(answer, situation)


def _answer(situation: "Situation") -> dict[str, Any]:
    shown = [c for c in _calls(situation) if c.call_id not in situation.left_out]
    return {
        "locale": situation.lexicon.locale,
        "opening": situation.lexicon.says[_opening(situation)],
        "cards": [{"call_id": call.call_id, "text": _card(call, situation)} for call in shown],
        "closing": "",
    }


def _calls(situation: "Situation") -> list[Call]:
    return situation.conversation.turns[-1].calls


def _opening(situation: "Situation") -> str:
    """Which of the lexicon's sentences fits what was asked and what came of it."""
    calls, reading = _calls(situation), situation.reading
    if not situation.able and (calls or reading.request):
        return "cannot_but" if any(call.error is None for call in calls) else "cannot"
    if calls:
        failed = [call.error is not None for call in calls]
        if not any(failed):
            return "found" if _told_anything(calls) else "no_orders"
        return "failed" if all(failed) else "mixed"
    if reading.asks and situation.stuck:
        return "no_way"
    if reading.talk and not reading.asks:
        return reading.talk
    return "outside" if reading.foreign else "which"


def _told_anything(calls: list[Call]) -> bool:
    """False where all that came back is a listing with nothing in it."""
    data = calls[-1].data
    return not data or any(value != [] for value in data.values())


def _card(call: Call, situation: "Situation") -> str:
    """A template for one result; empty where it failed or its tool needs no words of ours."""
    data = call.data
    if data is None:
        return ""
    filled = {name for name, value in data.items() if value not in (None, "", [])}
    required = _required(call.name, situation)
    words = situation.lexicon.data["cards"].get(call.name)
    text = _composed(words, situation.facets[call.call_id], filled | set(required)) if words else ""
    missing = [name for name in required if f"{{{name}}}" not in text]
    text = " ".join([*(f"{{{name}}}" for name in missing), text]).strip()
    return text if set(FIELD.findall(text)) <= set(data) else ""


def _composed(words: dict[str, Any], facets: frozenset[str], filled: set[str]) -> str:
    parts = words.get("parts", {})
    chosen = [parts[facet] for facet in parts if facet in facets]
    middle = chosen if chosen or facets & {"status", "where"} else words["full"]
    sentences = [words["head"], *middle, words["tail"]]
    return " ".join(s for s in sentences if s and set(FIELD.findall(s)) <= filled)


def _required(name: str, situation: "Situation") -> list[str]:
    tool = situation.conversation.tool(name)
    found = REQUIRED.search(tool.description) if tool else None
    return FIELD.findall(found[1]) if found else []


def _prose(answer: dict[str, Any], situation: "Situation") -> str:
    calls = {call.call_id: call.data or {} for call in _calls(situation)}
    cards = [_filled(card["text"], calls[card["call_id"]]) for card in answer["cards"]]
    return "\n".join(line for line in [answer["opening"], *cards, answer["closing"]] if line)


def _filled(text: str, values: dict[str, Any]) -> str:
    return FIELD.sub(lambda field: _said(values.get(field[1])), text)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_said(entry) for entry in value)
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    return str(value)
