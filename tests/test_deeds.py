"""What a customer reads about writes: the question before one, its failure, and its deed."""

import itertools
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from agent import ledger, ledger_records
from agent.answer.compose import Composer, Material
from agent.answer.question import question
from agent.answer.render import card_text, translated
from agent.calls import ErrorKind, ToolCall, ToolResult
from agent.write_tools import problem_of
from tests.ledgers import TOOLS, write_of
from tests.test_words import DATA, LANGUAGES
from tools.actions import HandedOver, Refund
from tools.failures import Refused
from tools.ids import OrderId
from tools.locales import DEFAULT, locale
from tools.shop import http_answers, rules
from tools.tool import BadDeclaration, Context, placeholders, tool

CANCEL, MOVE, REFUND, HAND = TOOLS
ARGUMENTS: dict[str, dict[str, Any]] = {
    CANCEL: {"order_id": "A-17", "reason": "late"},
    MOVE: {"order_id": "A-17", "address": "9 {order_id} Lane"},
    REFUND: {"order_id": "A-17", "amount": "10.00", "currency": "USD", "reason": "late"},
    HAND: {"summary": "Wants a person."},
}
RECEIPTS: dict[str, dict[str, Any]] = {
    CANCEL: {"order_id": "A-17"},
    MOVE: {"order_id": "A-17", "address": "9 Mill Lane"},
    REFUND: {"order_id": "A-17", "amount": "10.00", "currency": "USD"},
    HAND: {"ticket": "T-1B2C3D4E"},
}


ASKED = {
    "en": [
        "Cancel order A-17?",
        "Deliver order A-17 to 9 {order_id} Lane?",
        "Refund $10.00 for order A-17?",
        "Hand this conversation to a member of our staff?",
    ],
    "es": [
        "¿Cancelar el pedido A-17?",
        "¿Entregar el pedido A-17 en 9 {order_id} Lane?",
        "¿Reembolsar 10,00 US$ del pedido A-17?",
        "¿Pasar esta conversación a una persona de nuestro equipo?",
    ],
    "ru": [
        "Отменить заказ A-17?",
        "Доставить заказ A-17 по адресу: 9 {order_id} Lane?",
        "Вернуть 10,00 $ за заказ A-17?",
        "Передать этот разговор нашему сотруднику?",
    ],
    "zh": [
        "要取消订单 A-17 吗？",
        "要将订单 A-17 配送至 9 {order_id} Lane 吗？",
        "要为订单 A-17 退款 US$10.00 吗？",
        "要将这个对话转给我们的工作人员吗？",
    ],
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_customer_is_asked_about_all_that_makes_the_action(language: str) -> None:
    for (name, arguments), sentence in zip(ARGUMENTS.items(), ASKED[language], strict=True):
        checked = write_of(name, arguments).arguments
        for each in (arguments, checked):
            assert question(TOOLS[name], each, language).replace("\xa0", " ") == sentence
        translation = locale(language).data.get("questions", {}).get(name, TOOLS[name].question)
        assert placeholders(translation) == placeholders(TOOLS[name].question)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("", "a write needs"),
        ("Pay {amount}?", "identity is missing in the question: ['order_id']"),
        ("Pay {order_id} {sum} {currency}?", "question asks for no parameter: ['sum']"),
        ("Pay {order_id}?", "identity is missing in the question: ['amount', 'currency']"),
    ],
)
def test_a_write_whose_question_hides_what_is_done_is_refused(asked: str, problem: str) -> None:
    with pytest.raises(BadDeclaration, match=re.escape(problem)):

        @tool(
            effect="write",
            subject="order_id",
            identity=("order_id", "amount", "currency"),
            question=asked,
            sentence="Paid.",
        )
        async def pay(ctx: Context, order_id: OrderId, amount: Decimal, currency: str) -> Refund:
            """Pays an amount."""
            raise NotImplementedError


def test_a_read_asks_nothing() -> None:
    with pytest.raises(BadDeclaration, match=re.escape("only a write has: ['question']")):

        @tool(question="Look at it?", sentence="Looked.")
        async def look(ctx: Context) -> Refund:
            """Looks."""
            raise NotImplementedError


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_second_time_is_asked_for_as_that(language: str) -> None:
    once = question(TOOLS[CANCEL], ARGUMENTS[CANCEL], language)
    again = question(TOOLS[CANCEL], ARGUMENTS[CANCEL], language, again=True)
    assert once in again
    assert len(again) > len(once) + 10


def test_no_value_breaks_the_line_of_a_question() -> None:
    move = {**ARGUMENTS[MOVE], "address": "9 Mill Lane,\nSalem"}
    assert question(TOOLS[MOVE], move, "la") == "Deliver order A-17 to 9 Mill Lane, Salem?"


def composed(
    *results: ToolResult, asked: str = "A-17", draft: str | None = None, earlier: Any = None
) -> Any:
    calls = [
        ToolCall(
            call_id=result["call_id"],
            item_id="",
            name=result["tool"],
            arguments=result["arguments"],
            round=1,
            response_id="",
        )
        for result in results
    ]
    by_key = {f"1/{result['call_id']}": result for result in results}
    material = Material(1, asked, draft, calls, by_key, earlier=earlier or {})
    return Composer(TOOLS).compose(material)


def result_of(name: str, outcome: str, subject: str = "A-17", **more: Any) -> ToolResult:
    """A result whose outcome is a state of a receipt or the kind of an error."""
    about = TOOLS[name].subject
    arguments = {**ARGUMENTS[name], **({about: subject} if about else {})}
    receipt = {**RECEIPTS[name], **({about: subject} if about else {})}
    ok = outcome in ("done", "accepted")
    told: dict[str, Any] = {"error": {"kind": outcome, "message": more.pop("message", "Why.")}}
    if ok:
        told = {"data": {**receipt, "state": outcome, **more}}
    result: Any = {
        "call_id": f"{name}-{subject}",
        "tool": name,
        "subject": subject if about else "",
        "subject_name": about,
        "arguments": arguments,
        "status": "ok" if ok else "error",
        "started_at": "",
        "finished_at": "",
        **told,
    }
    return result  # type: ignore[no-any-return]


NOT_DONE = {"en": "not done", "es": "no se ha hecho", "ru": "не выполнено", "zh": "未完成"}
NOT_KNOWN = {
    "en": "whether it was done",
    "es": "si se ha hecho",
    "ru": "выполнено ли это",
    "zh": "是否已经完成",
}
NOT_YET = {"en": "not done yet", "es": "todavía no", "ru": "ещё не", "zh": "尚未"}


@pytest.mark.parametrize("kind", get_args(ErrorKind))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_write_that_failed_says_what_was_or_was_not_done(kind: str, language: str) -> None:
    unknown = {"unknown_outcome": NOT_KNOWN, "not_kept": NOT_KNOWN, "awaiting_approval": NOT_YET}
    for name in TOOLS:
        draft = f'{{"locale": "{language}", "opening": "", "cards": [], "closing": ""}}'
        [card] = composed(result_of(name, kind), draft=draft)["cards"]
        what = locale(language).data["what"][name].replace("{subject}", "A-17")
        assert card["text"].startswith(what)
        assert unknown.get(kind, NOT_DONE)[language] in card["text"]
        assert "{" not in card["text"]


def test_a_failed_write_reads_as_one_sentence_after_the_other() -> None:
    saying = "The customer did not confirm it, so it was not done."
    [card] = composed(result_of(CANCEL, "rejected", message=saying))["cards"]
    assert card["text"] == "The cancellation of order A-17: not done. You did not confirm it."
    [card] = composed(result_of(CANCEL, "refused"), asked="Cancel it!")["cards"]
    assert card["text"] == "One of the changes you asked for: not done. Why."


def test_a_receipt_that_cannot_be_shown_is_not_told_as_a_failure() -> None:
    [card] = composed(result_of(REFUND, "done", amount="1e30"))["cards"]
    assert "whether it was done" in card["text"]


def _order(status: Any) -> Any:
    total = {"total": Decimal(139), "refunded": Decimal(0), "currency": "USD"}
    return SimpleNamespace(order_id="A-17", status=status, **total)


def _refusals() -> Iterator[str]:
    """Each sentence of the demo shop's rules."""
    sent, ten = _order("in_transit"), Decimal(10)
    for rule, arguments in (
        (rules.may_cancel, (sent,)),
        (rules.may_change_address, (sent,)),
        (rules.may_refund, (_order("pending"), ten, "USD")),
        (rules.may_refund, (sent, ten, "EUR")),
        (rules.may_refund, (sent, Decimal("0.001"), "USD")),
        (rules.may_refund, (sent, Decimal(140), "USD")),
    ):
        with pytest.raises(Refused) as refused:
            rule(*arguments)
        yield refused.value.message


FIXED = [
    *(message for _, message in ledger_records.SENTENCES.values()),
    *(ledger.STALE, ledger.NOT_BEGUN, ledger.NOT_RECEIVED),
    *(ledger.BLOCKED, ledger.UNKNOWN, ledger.UNRECORDED),
    *(problem_of(TOOLS[CANCEL], error)["message"] for error in (TimeoutError(), ValueError())),
    *_refusals(),
    *(*http_answers.REFUSALS.values(), http_answers.REFUSED),
    "The service answered about something else. Nothing was changed.",
    "Nobody can take over here: conversations are not kept.",
    "This shop's orders cannot be changed from here.",
    "The customer did not confirm it, so it was not done.",
    "It waited for the customer's confirmation and was withdrawn. Nothing was changed.",
    "The customer did not confirm it, so it was not done. They say: " + "no, " * 99,
    "Nobody is signed in, so nothing was done.",
    "Changes need a conversation that is kept. Nothing was done.",
]


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != DEFAULT])
def test_every_fixed_sentence_is_told_in_the_language(language: str) -> None:
    for message in FIXED:
        told = translated(message, locale(language))
        assert told not in (message, translated(message, locale(DEFAULT))), message


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translated_message_names_the_values_of_the_english_one(language: str) -> None:
    for english, sentence in locale(language).data["messages"].items():
        assert placeholders(sentence) in (placeholders(english), set()), english


def test_a_message_keeps_its_values_and_any_other_is_shown_as_it_is() -> None:
    english = "Order A_17 is out for delivery, so it cannot be cancelled."
    assert translated(english, locale("es")) == (
        "El pedido A_17 está en reparto, así que no se puede cancelar."
    )
    paid = "Order A-17 was paid in USD, so it cannot be refunded in EUR."
    assert translated(paid, locale("zh")) == "订单 A-17 是以 USD 支付的，因此无法以 EUR 退款。"
    own = "Der Kran\nist {status}."
    assert translated(own, locale("ru")) == "Der Kran ist {status}."


DEEDS = tomllib.loads((DATA / "deeds.toml").read_text("utf-8"))
NOTHING_DONE = ("refused", "rejected", "awaiting_approval", "service_error", "unknown_outcome")


def shown(
    language: str, words: str, *results: ToolResult, asked: str = "A-17, B-21", **m: Any
) -> bool:
    cards = ", ".join(f'{{"call_id": "{each}", "text": ""}}' for each in m.get("earlier") or ())
    draft = f'{{"locale": "{language}", "opening": "{words}", "cards": [{cards}], "closing": ""}}'
    return words in composed(*results, asked=asked, draft=draft, **m)["message"]


def claims_of(language: str) -> Iterator[tuple[str, str]]:
    for state in ("done", "accepted"):
        for name, sentences in DEEDS[language][state].items():
            yield from ((name, sentence) for sentence in sentences)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_deed_is_claimed_by_nobody_who_has_done_nothing(language: str) -> None:
    passed = []
    for name, words in claims_of(language):
        of_others = [result_of(other, "done") for other in TOOLS if other != name]
        for results in ([], of_others, *([result_of(name, kind)] for kind in NOTHING_DONE)):
            passed += [words] if shown(language, words, *results) else []
    for words, kind in itertools.product(DEEDS[language]["nobody"], NOTHING_DONE):
        passed += [words] if shown(language, words, result_of(CANCEL, kind)) else []
    assert len(list(claims_of(language))) >= 15
    assert passed == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_deed_that_is_done_may_be_told(language: str) -> None:
    dropped = []
    for (name, words), again in itertools.product(claims_of(language), (False, True)):
        done = result_of(name, "done", repeated=again)
        told = shown(language, words, done), shown(language, words, earlier={"old": done})
        dropped += [] if all(told) else [(words, told)]
    assert dropped == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_only_accepted_is_told_as_requested(language: str) -> None:
    for name, words in claims_of(language):
        if name != HAND:
            requested = words in DEEDS[language]["accepted"][name]
            assert shown(language, words, result_of(name, "accepted")) == requested, words


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_receipt_licenses_no_more_than_it_says(language: str) -> None:
    for words in DEEDS[language]["never"]:
        assert not shown(language, words, *(result_of(name, "done") for name in TOOLS)), words


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_two_orders_of_which_one_failed_neither_is_told_as_done(language: str) -> None:
    words = DEEDS[language]["done"][CANCEL]
    for outcome in ("refused", "accepted"):
        results = result_of(CANCEL, "done"), result_of(CANCEL, outcome, "B-21")
        assert not any(shown(language, each, *results) for each in words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_orders_that_are_both_cancelled_may_be_told_together(language: str) -> None:
    results = result_of(CANCEL, "done"), result_of(CANCEL, "done", "B-21")
    assert shown(language, DEEDS[language]["both"], *results, asked="Yes.")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_conversation_that_is_given_back_is_with_nobody(language: str) -> None:
    back = result_of(HAND, "done", status="given_back")
    assert not any(shown(language, words, back) for words in DEEDS[language]["done"][HAND])
    speech, said = locale(language), set[str]()
    for status, again in itertools.product(("with_person", "given_back"), (False, True)):
        receipt = HandedOver.model_validate(
            {"state": "done", "ticket": "T-1", "status": status, "repeated": again}
        )
        said.add(card_text(str(speech.sentence("cards", HAND, receipt)), receipt, speech))
    assert len(said) == 3
    assert all("T-1" in each for each in said)
