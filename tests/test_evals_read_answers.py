"""What the evaluators make of answers that people wrote: many phrasings are right, no mix-up is."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evals.case import Case, Turn
from evals.cases import FOLDER
from evals.evaluators import EVALUATORS, Seen
from evals.truth import FIELDS, truth_of
from evals.words import LANGUAGES, words
from tools.locales import available, locale

DELIVERY = ("status", "carrier", "tracking_number", "promised_date", "days")
RIGHT = {
    "en": """Here is what I found.
Order A-17 is confirmed. Parcels: Harborline HX2417706391, promised for December 21, 2026
(delivery time: 4 days).
Order B-21 is delivered. Parcels: Meridian Cargo MC2705172872, promised for October 29, 2026
(delivery time: 15 days).""",
    "en, in other words": """I looked both up for you.
Confirmed: order A-17, with Harborline (HX2417706391). It is due 21 Dec 2026, after 4 days.
- B-21: delivered
- carried by Meridian Cargo, MC2705172872
- promised for 10/29/26, 15 days""",
    "ru": """Вот что я нашёл.
Заказ A-17: подтверждён. Посылка: Harborline HX2417706391, обещана к 21 декабря 2026 г. (4 дня).
Заказ B-21: доставлен. Посылка: Meridian Cargo MC2705172872, обещана к 29 октября 2026 г.
(15 дней).""",
    "zh": """以下是我查到的信息。
订单A-17已确认。包裹:Harborline HX2417706391,预计2026年12月21日送到(4天)。
订单B-21已送达。包裹:Meridian Cargo MC2705172872,预计2026年10月29日送到(15天)。""",
    "es": """Esto es lo que he encontrado.
El pedido A-17 está confirmado. Paquete: Harborline HX2417706391, para el 21 de diciembre de 2026
(4 días).
El pedido B-21 está entregado. Paquete: Meridian Cargo MC2705172872, para el 29 de octubre de 2026
(15 días).""",
}
SWAPS = [
    ("HX2417706391", "MC2705172872"),
    ("Harborline", "Meridian Cargo"),
    ("Harborline", "Kestrel Post"),
    ("HX2417706391", "HX2417706392"),
    ("2026", "2027"),
    ("21,", "29,"),
    ("21 ", "29 "),
    ("12月21日", "10月29日"),
    (" 4", " 15"),
    ("(4", "(5"),
    ("confirmed", "delivered"),
    ("confirmed", "not confirmed"),
    ("подтверждён", "доставлен"),
    ("подтверждён", "не подтверждён"),
    ("已确认", "已送达"),
    ("已确认", "未确认"),
    ("confirmado", "entregado"),
    ("HX2417706391", ""),
    ("A-17", "A-18"),
    ("A-17", "the first"),
]
FAILED = {
    "not_found": {
        "en": "There is no order Z-99 on your account.",
        "ru": "Заказа Z-99 нет в вашем аккаунте.",
        "zh": "您的账户中没有订单 Z-99。",
        "es": "No hay ningún pedido Z-99 en su cuenta.",
    },
    "timeout": {
        "en": "I could not check order Z-99: the service did not answer in time.",
        "ru": "Не удалось проверить заказ Z-99: служба не ответила вовремя.",
        "zh": "我无法查询订单 Z-99 的信息:服务没有及时响应。",
        "es": "No he podido comprobar el pedido Z-99: el servicio no respondió a tiempo.",
    },
}


known = cache(truth_of)


def judged(message: str, language: str, shop: Path, **expected: Any) -> dict[str, str]:
    """Which evaluators of the message find something wrong with it, and what first."""
    turn = Turn(ask="?", calls=(), **expected)
    case = Case(name="x", description="", customer="C-1001", language=language, turns=(turn,))
    report: dict[str, Any] = {"status": "answered", "message": message, "calls": [], "error": None}
    report["usage"] = {"input_tokens": 0, "output_tokens": 0}
    truth = known(shop)
    seen = Seen(case, turn, report, [{"says": message}], [], truth, truth)
    found = {evaluator.__name__: list(evaluator(seen)) for evaluator in EVALUATORS}
    return {name: wrongs[0].why for name, wrongs in found.items() if wrongs}


@pytest.mark.parametrize("kind", RIGHT)
def test_a_right_answer_passes(kind: str, demo_file: Path) -> None:
    facts = {"A-17": DELIVERY, "B-21": DELIVERY}
    assert judged(RIGHT[kind], kind[:2], demo_file, facts=facts) == {}


CHANGES = [(kind, was, now) for kind in RIGHT for was, now in SWAPS if was in RIGHT[kind]]


@pytest.mark.parametrize(("kind", "was", "now"), CHANGES)
def test_no_answer_with_a_changed_value_passes(
    kind: str, was: str, now: str, demo_file: Path
) -> None:
    changed = RIGHT[kind].replace(was, now, 1)
    facts = {"A-17": DELIVERY, "B-21": DELIVERY}
    assert "facts" in judged(changed, kind[:2], demo_file, facts=facts), changed


@pytest.mark.parametrize("language", ["en", "ru", "zh", "es"])
@pytest.mark.parametrize("kind", FAILED)
def test_not_found_and_not_checked_are_told_apart(
    kind: str, language: str, demo_file: Path
) -> None:
    other = {"not_found": "timeout", "timeout": "not_found"}[kind]
    message = FAILED[kind][language]
    assert judged(message, language, demo_file, failures={"Z-99": kind}) == {}
    assert "failures" in judged(message, language, demo_file, failures={"Z-99": other})


@pytest.mark.parametrize("value", ["$58.40", "confirmed", "Harborline", "December 21, 2026", "17"])
def test_a_value_beside_a_failed_order_is_found(value: str, demo_file: Path) -> None:
    message = f"I could not check order Z-99, it is {value}."
    assert "failures" in judged(message, "en", demo_file, failures={"Z-99": "timeout"})


@pytest.mark.parametrize("language", ["ru", "zh", "es"])
def test_an_answer_in_another_language_is_found(language: str, demo_file: Path) -> None:
    facts = {"A-17": DELIVERY, "B-21": DELIVERY}
    assert "language" in judged(RIGHT["en"], language, demo_file, facts=facts)
    assert "language" in judged(RIGHT[language], "en", demo_file, facts=facts)


@pytest.mark.parametrize("language", sorted(available() & set(LANGUAGES)))
def test_what_the_agent_says_in_a_language_is_understood(language: str) -> None:
    speech, understood = locale(language), words(language)
    for status in understood.statuses:
        said = speech.enumeration("status", status)
        meant = {name for name, wording in understood.statuses.items() if wording.search(said)}
        assert meant == {status}, said
    for kind in ("not_found", "timeout", "service_error", "wrong_subject"):
        said = str(speech.sentence("error", kind))
        assert bool(understood.not_found.search(said)) == (kind == "not_found"), said
        assert bool(understood.unchecked.search(said)) == (kind != "not_found"), said


def test_a_case_may_ask_for_every_fact_of_the_shop_and_no_other() -> None:
    schema = json.loads((FOLDER / "schema.json").read_text())
    facts = schema["$defs"]["turn"]["properties"]["facts"]["additionalProperties"]
    assert set(facts["items"]["enum"]) == set(FIELDS)


def test_a_value_that_two_orders_share_decides_nothing(demo_file: Path) -> None:
    """A and 00123 were placed on one day: were the two mixed up, nobody could see it."""
    message = "Order A was placed on November 13, 2026.\nOrder 00123, too: November 13, 2026."
    facts = {"A": ("placed_on",), "00123": ("placed_on",)}
    assert "the same placed_on" in judged(message, "en", demo_file, facts=facts)["facts"]
