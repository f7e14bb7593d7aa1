"""The agent in each of its languages: one data file a language, English where one is missing."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage

import tools
from agent.settings import Settings
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, cards_of, failing, graph_of
from tools.database import Database
from tools.locales import DEFAULT, available, guess, locale
from tools.registry import TOOLS
from tools.tool import placeholders

LANGUAGES = sorted(available())
A_AND_B = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_delivery", {"order_id": "B"}))

# An order's and a delivery's card as a person would write them.
CARDS = {
    "en": (
        "Order A is on its way. It was placed on November 13, 2026 and comes to $139.00:",
        "Order B is shipped. Its parcel: Kestrel Post KP4167938409, promised for December 15, 2026"
        " (delivery time: 5 days).",
    ),
    "ru": (
        "Заказ A: в пути. Оформлен 13 ноября 2026 г., сумма 139,00 $:",
        "Заказ B: отправлен. Посылка: Kestrel Post KP4167938409, обещанная дата:"
        " 15 декабря 2026 г. (срок доставки: 5 дней).",
    ),
    "zh": (
        "订单 A：运输中。下单日期：2026年11月13日，金额 US$139.00：",
        "订单 B：已发货。包裹：Kestrel Post KP4167938409，承诺日期 2026年12月15日"
        "（配送时间 5 天）。",
    ),
    "es": (
        "Pedido A: en camino. Se hizo el 13 de noviembre de 2026 y suma 139,00 US$:",
        "Pedido B: enviado. Su paquete: Kestrel Post KP4167938409, fecha prometida: 15 de diciembre"
        " de 2026 (plazo de entrega: 5 días).",
    ),
}
QUESTIONS = {
    "en": "Where are my orders A and B?",
    "ru": "Где мои заказы A и B?",
    "zh": "我的订单A和B在哪里？",
    "es": "¿Dónde están mis pedidos A y B?",
}


async def _answer(database: Database, *lines: Any, text: str = "A, B", **options: Any) -> Any:
    graph = graph_of(Scripted(*lines), database=database, **options)
    return (await ask(graph, text, str(uuid4())))["answer"]


def _plain(text: str) -> str:
    return text.replace("\xa0", " ").replace("\u202f", " ")


@pytest.mark.parametrize("language", CARDS)
async def test_two_orders_are_answered_as_the_language_writes_them(
    language: str, database: Database
) -> None:
    answer = await _answer(database, A_AND_B, answering(locale=language))
    first, second = (card["text"] for card in answer["cards"])
    assert _plain(first).splitlines()[0] == CARDS[language][0]
    assert _plain(second) == CARDS[language][1]
    assert answer["locale"] == language


@pytest.mark.parametrize("language", CARDS)
async def test_a_card_of_the_model_gets_the_values_of_the_language(
    language: str, database: Database
) -> None:
    draft = answering(("c1", "{order_id}: {status}, {total}, {placed_on}"), locale=language)
    answer = await _answer(database, A_AND_B, draft)
    speech = locale(language)
    text = _plain(answer["cards"][0]["text"])
    assert text.startswith(f"A: {speech.enumeration('status', 'in_transit')}, ")
    assert answer["cards"][0]["source"] == "model"
    assert ("139.00" if language in ("en", "zh") else "139,00") in text


# The words of a card, around its values: some that are used, and some that deny or colour a value.
USED = {
    "en": ["Order {order_id}: {status}, {total}.", "{order_id} – now {status}; placed {placed_on}"],
    "ru": ["Заказ {order_id} — {status}, сумма {total}.", "По заказу {order_id}: {status}."],
    "zh": ["订单{order_id}：{status}，金额{total}。", "订单 {order_id} 的状态是{status}。"],
    "es": ["Pedido {order_id}: {status}, {total}.", "Su pedido {order_id} está {status}."],
}
REFUSED = {
    "en": [
        "{order_id} was never {status}",
        "{order_id}: {status}, perhaps",
        "{order_id}? {status}✅",
    ],
    "ru": [
        "Заказ {order_id} не {status}",
        "Заказ {order_id} больше не {status}",
        "Заказ {order_id} едва ли {status}",
        "Заказ {order_id} будет {status}",
        "Заказ {order_id}: {status}, дocтaвлeн",
        "Заказ {order_id}: {status}, delivered",
        "Заказ {order_id}: {status}, как и B",
        "Заказ {order_id}: {status}, В и {total}",
    ],
    "zh": [
        "订单{order_id}不是{status}",
        "订单{order_id}尚未{status}",
        "订单{order_id}已不再{status}",
        "订单{order_id}大概{status}",
        "订单{order_id}{status}，已 送 达",
        "订单{order_id}{status}，delivered",
        "订单{order_id}{status}，和B一样",
        "订单{order_id}：{status}于{placed_on}",
    ],
    "es": [
        "El pedido {order_id} no está {status}",
        "El pedido {order_id} ya no está {status}",
        "El pedido {order_id} apenas está {status}",
        "El pedido {order_id} tampoco está {status}",
        "Pedido {order_id}: {status}, еntrеgado",
        "Pedido {order_id}: {status}, como B",
        "Pedido {order_id} Y: {status}",
        "El pedido {order_id} está {status} el {placed_on}",
    ],
}
A_THEN_B = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"}))


@pytest.mark.parametrize("language", USED)
async def test_the_words_of_a_card_neither_deny_nor_add_a_value(
    language: str, database: Database
) -> None:
    seen = {"model": list[str](), "default": list[str]()}
    for template in (*USED[language], *REFUSED[language]):
        answer = await _answer(database, A_THEN_B, answering(("c1", template), locale=language))
        seen[answer["cards"][0]["source"]].append(template)
    assert seen == {"model": USED[language], "default": REFUSED[language]}


async def test_a_question_in_a_language_without_a_file_is_answered_in_english(
    database: Database,
) -> None:
    words, asked = "Ecce quae inveni.", "Ubi sunt A et B?"
    draft = answering(("c1", "Mandatum {order_id}: {status}"), opening=words, locale="la")
    answer = await _answer(database, A_AND_B, draft, text=asked)
    assert answer["locale"] == "en"
    assert _plain(answer["message"]) == "\n".join(
        [_plain(answer["cards"][0]["text"]), CARDS["en"][1]]
    )
    assert _plain(answer["message"]).startswith(CARDS["en"][0])
    limit = Settings(model="offline", max_rounds=1)
    assert (await _answer(database, A_AND_B, text=asked, settings=limit))["locale"] == "en"


@pytest.mark.parametrize("language", CARDS)
@pytest.mark.parametrize("kind", locale(DEFAULT).data["error"])
def test_each_kind_of_failure_has_a_sentence_of_its_own(kind: str, language: str) -> None:
    sentence, english = (locale(name).data["error"][kind] for name in (language, DEFAULT))
    assert placeholders(sentence) == placeholders(english)
    assert language == DEFAULT or kind in ("refused", "not_found_bare") or sentence != english


@pytest.mark.parametrize("language", CARDS)
async def test_failures_are_told_in_the_language_beside_the_data(
    language: str, database: Database
) -> None:
    calls = calling(
        ("c1", "get_order", {"order_id": "A"}),
        ("c2", "get_order", {"order_id": "NO-SUCH"}),
        ("c3", "get_delivery", {"order_id": "B"}),
        ("c4", "no_tool", {}),
        ("c5", "get_order", {"id": "B"}),
    )
    tools_ = failing(TOOLS, ["c3"])
    asked = f"{QUESTIONS[language]} NO-SUCH, B?"
    answer = await _answer(database, calls, answering(locale=language), tools=tools_, text=asked)
    texts = {id_: card["text"] for id_, card in cards_of({"answer": answer}).items()}
    error, what = locale(language).data["error"], locale(language).data["what"]
    assert _plain(texts["c1"]).startswith(CARDS[language][0])
    assert texts["c2"] == error["not_found"].replace("{subject}", "NO-SUCH")
    assert texts["c3"] == error["service_error"].replace(
        "{what}", what["get_delivery"].replace("{subject}", "B")
    )
    assert texts["c4"] == error["unknown_tool"].replace("{what}", what["one_thing"])
    assert texts["c5"] == error["invalid_arguments"].replace("{what}", what["one_thing"])


@pytest.mark.parametrize("language", QUESTIONS)
async def test_without_a_draft_the_answer_is_in_the_language_of_the_question(
    language: str, database: Database
) -> None:
    asked = QUESTIONS[language]
    limit = Settings(model="offline", max_rounds=1)
    answer = await _answer(database, A_AND_B, text=asked, settings=limit)
    assert answer["locale"] == language
    assert _plain(answer["message"]).startswith(CARDS[language][0])
    assert answer["message"].endswith(locale(language).data["answer"]["limit"])
    prose = await _answer(database, A_AND_B, AIMessage("..."), text=asked)
    assert prose["locale"] == language


@pytest.mark.parametrize("language", QUESTIONS)
async def test_a_turn_that_failed_is_told_in_the_language_of_the_question(
    language: str, database: Database
) -> None:
    broken = [ConnectionError("no network")] * 9
    answer = await _answer(database, *broken, text=QUESTIONS[language])
    assert answer["status"] == "failed"
    assert answer["message"] == locale(language).data["turn"][answer["error"]["kind"]]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("where's my stuff, and when will it arrive?", "en"),
        ("donde esta mi pedido", "es"),
        ("когда придет заказ", "ru"),
        ("A-17什么时候到", "zh"),
        ("Wo ist A-17?", None),
        ("Де моє замовлення?", None),
        ("注文はどこですか", None),
        ("Où est ma commande ?", None),
        ("A-17", None),
        ("", None),
    ],
)
def test_the_language_of_a_question_is_guessed(text: str, language: str | None) -> None:
    found = guess(text)
    assert found == language or (language is None and found not in CARDS)  # a language of a clone's


@pytest.mark.parametrize(
    ("language", "days"),
    [
        ("en", {1: "1 day)", 2: "2 days)", 21: "21 days)"}),
        ("ru", {1: "1 день", 2: "2 дня", 5: "5 дней", 11: "11 дней", 21: "21 день", 22: "22 дня"}),
        ("es", {1: "1 día)", 2: "2 días)"}),
        ("zh", {1: "1 天", 2: "2 天"}),
    ],
)
def test_words_follow_the_number(language: str, days: dict[int, str]) -> None:
    for number, words in days.items():
        view = SimpleNamespace(days=number)
        line = locale(language).sentence("lines", "ParcelView", view)
        assert line is not None
        assert words in line.replace("{days}", str(number))


@pytest.mark.parametrize("language", CARDS)
@pytest.mark.parametrize("count", [0, 1, 2, 21])
def test_a_card_speaks_of_one_parcel_as_of_one(count: int, language: str) -> None:
    view = SimpleNamespace(parcels=[object()] * count)
    sentence = locale(language).sentence("cards", "get_delivery", view)
    assert sentence is not None
    assert ("{parcels}" in sentence) == (count > 0)
    plural = {"en": "Its parcels:", "es": "Sus paquetes:", "ru": "Посылки:", "zh": "包裹："}
    assert (plural[language] in sentence) == (count > 1 or (language == "zh" and count == 1))


def _forms(sentence: Any) -> list[str]:
    if isinstance(sentence, str):
        return [sentence]
    return [text for name, form in sentence.items() if name != "by" for text in _forms(form)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_cards_of_a_language_name_only_fields_and_all_that_are_required(
    tool: Any, language: str
) -> None:
    sentence = locale(language).data["cards"].get(tool.name, tool.sentence)
    counted = sentence.get("by") if isinstance(sentence, dict) else ""
    for form in _forms(sentence):
        assert placeholders(form) <= set(tool.returns.model_fields)
        assert set(tool.required) - {counted} <= placeholders(form)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_says_all_that_english_says(language: str) -> None:
    english, own = locale(DEFAULT).data, locale(language).data
    for section in ("values", "answer", "turn", "what", "error", "write_error", "cards", "lines"):
        for key, sentence in english[section].items():
            forms, ours = _forms(sentence), _forms(own[section][key])
            assert {p for f in ours for p in placeholders(f)} == {
                p for f in forms for p in placeholders(f)
            }, (section, key)


@pytest.mark.parametrize("language", CARDS)
async def test_an_order_that_a_comparison_does_not_find_is_told_in_the_language_of_the_answer(
    language: str, database: Database
) -> None:
    compared = calling(("c1", "compare_orders", {"order_ids": ["A", "ZZ-9"]}))
    answer = await _answer(database, compared, answering(locale=language))
    one = await _answer(
        database,
        calling(("c1", "get_order", {"order_id": "ZZ-9"})),
        answering(locale=language),
        text="ZZ-9?",
    )
    assert answer["message"] == one["message"]
    assert "ZZ-9" in answer["message"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [("Вот что я нашёл.", True), ("Заказ уже едет.", False), ("Ihr Paket kommt morgen.", False)],
)
async def test_words_are_checked_in_the_language_in_which_they_are_written(
    words: str, shown: bool, database: Database
) -> None:
    for named in ("ru", "en", "de") if not shown else ("ru",):
        draft = answering(("c1", "{order_id} {status}"), opening=words, locale=named)
        answer = await _answer(database, A_AND_B, draft)
        assert (words in answer["message"]) == shown, named


async def test_a_number_of_the_customer_is_known_where_words_have_no_spaces(
    database: Database,
) -> None:
    known, unknown = "这是订单A-17的信息。", "这是订单A-18的信息。"
    for words in (known, unknown):
        draft = answering(("c1", "{order_id} {status}"), opening=words, locale="zh")
        answer = await _answer(database, A_AND_B, draft, text="我的订单A-17呢")
        assert (words in answer["message"]) == (words == known)


async def test_another_order_is_seen_where_words_have_no_spaces(database: Database) -> None:
    both = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"}))
    draft = answering(("c1", "订单B{status}，{order_id}"), locale="zh")
    answer = await _answer(database, both, draft)
    assert answer["cards"][0]["source"] == "default"


def test_a_clone_keeps_the_languages_that_it_wants(tmp_path: Path) -> None:
    others = [f"{language}.toml" for language in LANGUAGES if language != DEFAULT]
    ignored = shutil.ignore_patterns(*others, "*.??.md")
    shutil.copytree(Path(tools.__file__).parent, tmp_path / "tools", ignore=ignored)
    (tmp_path / "tools" / "locales" / "fr.toml").write_text('[enums.status]\nshipped = "expédié"\n')
    code = (
        "import agent.graph\n"
        "from tools.locales import available, guess, locale\n"
        "from tools.policy import version\n"
        "assert available() == {'en', 'fr'} and locale('ru').name == 'en', available()\n"
        "assert locale('fr').enumeration('status', 'shipped') == 'expédié'\n"
        "assert locale('fr').sentence('answer', 'nothing').startswith('How can I help')\n"
        "assert guess('Где мой заказ?') is None and guess('where is my order') == 'en'\n"
        "assert '.ru' not in version()\n"
    )
    root = Path(tools.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{root}", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
