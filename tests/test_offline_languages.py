"""The offline model in its languages: data/wordings_languages.yaml, and the words it says."""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml

from agent.answer.words import FreeWords
from offline_model.lexicon import FILES, lexicon, spoken
from tests.test_offline_reading import TOOLS, Item, answers, calls_in, function, respond, said
from tools.locales import locale

SHORT = {
    "get_delivery": "d",
    "get_order": "o",
    "list_orders": "l",
    "compare_orders": "c",
    "get_policy": "p",
}
TOPICS = {"type": "string", "enum": ["contact", "delivery", "refunds", "returns"]}
POLICY = function("get_policy", "The shop's policy: a section of it, word for word.", topic=TOPICS)
QUESTIONS: list[tuple[str, str, str]] = [
    (language, text, calls)
    for language, cases in yaml.safe_load(
        (Path(__file__).parent / "data" / "wordings_languages.yaml").read_text(encoding="utf-8")
    ).items()
    for text, calls in cases.items()
]
LANGUAGES = sorted(FILES)


@pytest.mark.parametrize(("language", "text", "calls"), QUESTIONS)
async def test_a_question_is_read_and_answered_in_its_language(
    language: str, text: str, calls: str
) -> None:
    items: list[Item] = []
    for message in text.split(" // "):
        items.append(said(message))
        made: list[list[str]] = []
        while calls_in(output := await respond(items, [*TOOLS, POLICY], text=FORM)):
            made.append(sorted(map(short, calls_in(output))))
            items += [*output, *answers(calls_in(output))]
        items += output
    assert made == [sorted(part.split()) for part in calls.split(" > ") if part]
    assert json.loads(output[0]["content"][0]["text"])["locale"] == language


FORM = {
    "format": {
        "type": "json_schema",
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"locale": {"type": "string"}, "opening": {"type": "string"}},
            "required": ["locale", "opening"],
            "additionalProperties": False,
        },
    }
}


def short(call: Item) -> str:
    (value,) = json.loads(call["arguments"]).values() or ("",)
    text = "+".join(value) if isinstance(value, list) else value
    return f"{SHORT[call['name']]}:{text}".rstrip(":")


def test_every_language_has_enough_questions() -> None:
    asked = Counter(language for language, _, _ in QUESTIONS)
    assert all(asked[language] >= 20 for language in LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_says_all_that_english_does(language: str) -> None:
    own, english = FILES[language], FILES["en"]
    assert own["says"].keys() == english["says"].keys()
    assert own["cards"].keys() == english["cards"].keys()
    for tool, words in english["cards"].items():
        assert own["cards"][tool].get("parts", {}).keys() == words.get("parts", {}).keys()


@pytest.mark.parametrize(("language", "name"), [*itertools.product(LANGUAGES, FILES["en"]["says"])])
def test_what_it_says_states_no_fact(language: str, name: str) -> None:
    """In the agent's own judgement, which drops free words that do."""
    for text in lexicon(language).says[name]:
        assert FreeWords.of(locale(language), []).allows(text), text


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("Where is A-17?", ["en"]),
        ("ES-501, ES-502", []),
        ("Wann kommt Bestellung A an?", []),
        ("注文A-17はいつ届きますか", []),
        ("Де моє замовлення?", []),
        ("status заказа A-17 please", ["ru", "en"]),
    ],
)
def test_the_languages_of_a_text_are_found(text: str, languages: list[str]) -> None:
    assert spoken(text) == languages


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("Wann kommt Bestellung A an?", ["o:A"]),
        ("Où est ma commande B-21 ?", ["o:B-21"]),
        ("注文A-17はいつ届きますか", ["o:A-17"]),
        ("Де моє замовлення A-18?", ["o:A-18"]),
        ("Wie lange kann ich das zurückgeben?", []),
    ],
)
async def test_another_language_is_answered_in_english_and_honestly(
    text: str, calls: list[str]
) -> None:
    items = [said(text)]
    first = await respond(items)
    assert list(map(short, calls_in(first))) == calls
    (last,) = await respond([*items, *first, *answers(calls_in(first))], text=FORM)
    says = {"locale": "en", "opening": lexicon("en").says["language"][0]}
    assert json.loads(last["content"][0]["text"]) == says
