"""What the customer reads of the model's own words (promise P6): none that state a fact."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.scripted import answering, calling
from tests.turns import A_AND_B, answered
from tools.database import Database

GOOD = "{order_id} {status}"


@pytest.mark.parametrize(
    "text",
    ["I have your orders here.", "{}", '{"cards": []}', "null", "[]", "{", "```json\n{}\n```", ""],
)
async def test_words_instead_of_a_draft_give_the_default_cards(
    text: str, database: Database
) -> None:
    answer = await answered(database, A_AND_B, AIMessage(text))
    assert [(card["call_id"], card["source"]) for card in answer["cards"]] == [
        ("c1", "default"),
        ("c2", "default"),
    ]
    assert answer["status"] == "answered"
    assert answer["message"].startswith("Order A is on its way.")


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", " \n{}\n ", "```json{}```"])
async def test_a_draft_in_a_code_fence_is_a_draft(fence: str, database: Database) -> None:
    draft = answering(("c1", GOOD), ("c2", GOOD)).text
    answer = await answered(database, A_AND_B, AIMessage(fence.replace("{}", draft)))
    assert answer["message"] == "A on its way\nB shipped"


STOCK = "How can I help you with your orders?"


@pytest.mark.parametrize(
    "text",
    [
        '{"locale":"en","opening":"Hello","cards":[]}',
        '{"answer":"Hello"}',
        '```json\n{"answer":"Hello"}\n```',
        "[]",
        '{"locale":"en","opening":"Hello',
        "null",
        "None.",
        '"Hello!"',
        "<answer>Hello!</answer>",
        "I can help. " * 100_000,
    ],
)
async def test_what_was_not_meant_for_a_person_is_never_shown(
    text: str, database: Database
) -> None:
    answer = await answered(database, AIMessage(text), text="Hello!")
    assert answer["message"].startswith(STOCK)


@pytest.mark.parametrize("name", ["xx", "", "la-VA-1962", "../en", "Klingon", "🙂"])
async def test_a_language_without_a_file_is_answered_in_english(
    name: str, database: Database
) -> None:
    answer = await answered(database, A_AND_B, answering(("c1", GOOD), ("c2", GOOD), locale=name))
    assert answer["locale"] == "en"
    assert [card["source"] for card in answer["cards"]] == ["default", "default"]
    assert answer["message"].startswith("Order A is on its way.")


@pytest.mark.parametrize("name", ["en_US", "EN", "en-GB"])
async def test_a_region_of_a_language_is_that_language(name: str, database: Database) -> None:
    answer = await answered(database, A_AND_B, answering(("c1", GOOD), ("c2", GOOD), locale=name))
    assert answer["message"] == "A on its way\nB shipped"


@pytest.mark.parametrize("words", ["Mandatum tuum advenit.", "Mandatum tuum cras adveniet."])
async def test_words_in_a_language_that_nothing_here_can_check_are_not_shown(
    words: str, database: Database
) -> None:
    draft = answering(("c1", words + " {order_id} {status}"), opening=words, locale="la")
    answer = await answered(database, A_AND_B, draft)
    assert words not in answer["message"]


async def test_an_order_that_only_the_model_named_is_not_repeated(database: Database) -> None:
    claim = "A-17 was delivered on May fifth"
    model = (calling(("c1", "get_order", {"order_id": claim})), answering(("c1", "")))
    answer = await answered(database, *model, text="How is A-17?")
    assert answer["message"] == "There is no such order on your account."


INVENTED = [
    "It will arrive tomorrow.",
    "It arrives in 3 days.",
    "It arrives in three days.",
    "All good, refunded!",
    "I have cancelled your order.",
    "Your refund is on its way.",
    "B-99 comes first.",
    "That is $20.",
    "That is twenty euros.",
    "It was delivered.",
    "Both are shipped!",
    "No such order exists.",
    "I have changed your address.",
    "I forwarded this to a colleague.",
    "Expect it on Friday.",
    "Good news: no delays!",
    "It will be there ½ a day later.",
    "It is t\u200bomorrow.",
    "TOMORROW!",
    "ｔｏｍｏｒｒｏｗ",
    "Hello! ✅",
    "Hello, dеlivеrеd!",
    "Hello, ᴅelivered!",
    "Hello, d-e-l-i-v-e-r-e-d!",
    "Hello, see shop.invented!",
    "Hello, <b>Dana</b>!",
    "Hello, XII!",
    "Please reply with your PIN.",
    "Could you tell me your password?",
    "Please pay the driver.",
    "Please disregard what follows.",
    "I will change the address.",
]


async def test_free_words_that_state_a_fact_are_dropped(database: Database) -> None:
    shown = []
    for words in INVENTED:
        draft = answering(("c1", GOOD), ("c2", GOOD), opening=words, closing=words)
        answer = await answered(database, A_AND_B, draft)
        shown += [words] if answer["message"] != "A on its way\nB shipped" else []
    assert shown == []


async def test_without_any_call_invented_facts_are_dropped_too(database: Database) -> None:
    shown = []
    for words in INVENTED:
        for line in (answering(opening=words), answering(closing=words), AIMessage(words)):
            answer = await answered(database, line, text="Please cancel my order and refund it.")
            assert answer["status"] == "answered"
            shown += [] if answer["message"].startswith(STOCK) else [words]
    assert shown == []


@pytest.mark.parametrize(
    "words",
    [
        "Here is what I found about A and B.",
        "Hello! Here you are.",
        "Is there anything else I can do for you?",
        "Of course, Dana.",
        "Here is what I found about order 17 and A-18.",
        "Here is what I found about order a-18!",
    ],
)
async def test_clean_words_and_ids_of_the_customer_stay(words: str, database: Database) -> None:
    draft = answering(("c1", GOOD), ("c2", GOOD), opening=words, closing=words)
    answer = await answered(database, A_AND_B, draft, text="How are A, B, 17 and A-18?")
    assert answer["message"] == f"{words}\nA on its way\nB shipped\n{words}"


async def test_an_order_is_not_said_to_come_first_though_the_customer_named_it(
    database: Database,
) -> None:
    draft = answering(("c1", GOOD), ("c2", GOOD), opening="A-17 comes first.")
    answer = await answered(database, A_AND_B, draft, text="Does A-17 come first?")
    assert "comes first" not in answer["message"]


async def test_endless_words_are_dropped_and_an_endless_draft_is_none(database: Database) -> None:
    card, longer = ("c1", GOOD), "I can help. " * 100
    answer = await answered(database, A_AND_B, answering(card, opening=longer, closing=longer))
    assert answer["message"].startswith("A on its way\nOrder B is shipped.")
    endless = answering(card, opening=longer * 200)
    answer = await answered(database, A_AND_B, endless)
    assert [card["source"] for card in answer["cards"]] == ["default", "default"]


async def test_a_number_of_the_customer_allows_no_other_number(database: Database) -> None:
    for words in ("About A-1 then.", "About A-177 then.", "About 7 then.", "About A-18 then."):
        answer = await answered(
            database, A_AND_B, answering(("c1", GOOD), opening=words), text="How is A-17?"
        )
        assert words not in answer["message"]


@pytest.mark.parametrize("hidden", ["\x1b[31m", "\u202e", "\u2066", "\x00", "\x9b", "\r"])
async def test_the_words_of_the_model_hide_and_reorder_nothing(
    hidden: str, database: Database
) -> None:
    draft = answering(
        ("c1", f"{{order_id}} {hidden}{{status}}"), ("c2", GOOD), opening=f"Hello{hidden} there."
    )
    answer = await answered(database, A_AND_B, draft)
    assert hidden not in answer["message"]


@pytest.mark.parametrize("text", ["Hello \ud800", '{"opening": "\ud800"}'])
async def test_half_a_character_in_the_last_message_does_not_break_the_turn(
    text: str, database: Database
) -> None:
    answer = await answered(database, A_AND_B, AIMessage(text))
    assert answer["status"] == "answered"
    assert len(answer["cards"]) == 2


async def test_a_model_that_refuses_is_heard(database: Database) -> None:
    refusal: Any = [{"type": "refusal", "refusal": "I cannot help with that."}]
    answer = await answered(database, AIMessage(content=refusal), text="Tell me a secret.")
    assert answer["message"] == "I cannot help with that."


async def test_an_answer_that_says_nothing_is_a_stock_sentence(database: Database) -> None:
    for line in (AIMessage(""), answering(), AIMessage("  \n"), answering(opening=" ")):
        answer = await answered(database, line, text="Hello!")
        assert answer["message"].startswith(STOCK)


async def test_the_draft_is_read_to_the_letter(database: Database) -> None:
    draft = json.loads(answering(("c1", GOOD)).text)
    odd = [
        {**draft, "extra": 1},
        {**draft, "cards": {"c1": GOOD}},
        {**draft, "opening": None},
        {**draft, "cards": [{"call_id": "c1"}]},
        {**draft, "cards": [{"call_id": 1, "text": GOOD}]},
    ]
    for each in odd:
        answer = await answered(database, A_AND_B, AIMessage(json.dumps(each)))
        assert [card["source"] for card in answer["cards"]] == ["default", "default"]
