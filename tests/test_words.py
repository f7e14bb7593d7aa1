"""How often the checks of a model's words err: promise P6 asks for the figures; they are printed.

data/words/LANGUAGE.right.txt holds openings and closings that state no fact, .wrong.txt such that
do; `\\u200b` in them is that character. The lists of words were tuned on what stands above the
comment in each file. The fair figures are those of the lines below it, written when the lists were
done, though by whoever wrote the lists. A false alarm costs a polite sentence, a miss may cost the
truth.

data/words/LANGUAGE.cards.txt holds cards as a good model writes them, each behind its tool; those
below the comment were not looked at when the vocabulary was written. One that is refused costs
nothing but its wording.
"""

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agent.answer.vocabulary import card_allows
from agent.answer.words import FreeWords
from offline_model.lexicon import FILES
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, cards_of, graph_of
from tools.database import Database
from tools.locales import available, locale
from tools.registry import TOOLS

DATA = Path(__file__).parent / "data" / "words"
LANGUAGES = ("en", "es", "ru", "zh")
KINDS = ("right", "wrong")
NAMED = ["Dana, A, B and A-18"]  # what the customer has typed before
# The most that each part may err, false alarms and misses: a little above what was measured, so
# that a change of the lists cannot make them worse unseen.
BOUNDS = {"tuned on": (0.03, 0.01), "unseen": (0.20, 0.10)}
ALL_UNSEEN = (0.15, 0.04)  # the same for the unseen ones of all languages together
CARDS_REFUSED = 0.10
HIDDEN = re.compile(r"\\u([0-9a-f]{4})")


@dataclass(frozen=True)
class Rate:
    wrongly: list[str]
    of: int

    @property
    def share(self) -> float:
        return len(self.wrongly) / self.of

    def __str__(self) -> str:
        return f"{len(self.wrongly):3} of {self.of:3} {self.share:6.1%}"


def sentences(language: str, kind: str) -> dict[str, list[str]]:
    """The sentences of a file by part."""
    text = (DATA / f"{language}.{kind}.txt").read_text("utf-8")
    tuned, unseen = HIDDEN.sub(lambda code: chr(int(code[1], 16)), text).split("\n# ", 1)
    return {"tuned on": tuned.split("\n"), "unseen": unseen.removesuffix("\n").split("\n")[1:]}


def rate(language: str, kind: str, part: str) -> Rate:
    """How many sentences of a part are judged wrongly."""
    check = FreeWords.of(locale(language), NAMED)
    all_ = sentences(language, kind)[part]
    return Rate([line for line in all_ if check.allows(line) != (kind == "right")], len(all_))


def cards(language: str, part: str) -> Rate:
    """How many ordinary cards of a part are refused."""
    lines = [line.split(" ", 1) for line in sentences(language, "cards")[part]]
    refused = [text for tool, text in lines if not _card_allowed(tool, text, language)]
    return Rate(refused, len(lines))


def offline_cards(language: str) -> Rate:
    """The same of the sentences of which the offline model makes its cards."""
    every = [(tool, text) for tool, text in _offline(language) if text]
    refused = [text for tool, text in every if not _card_allowed(tool, text, language)]
    return Rate(refused, len(every))


def _offline(language: str) -> Iterator[tuple[str, str]]:
    for tool, words in FILES[language]["cards"].items():
        parts = itertools.chain.from_iterable(words.get("parts", {}).values())
        for text in (words["head"], words.get("beside"), words["tail"], *words["full"], *parts):
            yield tool, text


def _card_allowed(name: str, text: str, language: str) -> bool:
    tool, speech = next(tool for tool in TOOLS if tool.name == name), locale(language)
    one = SimpleNamespace(orders=[1], parcels=[1], order_ids=[1, 2], latest_date=1)
    own = speech.sentence("cards", name, one) or tool.sentence
    return card_allows(text, own, tool.subject or tool.required[0], speech)


def together(kind: str, part: str) -> Rate:
    rates = [rate(language, kind, part) for language in LANGUAGES]
    return Rate([line for each in rates for line in each.wrongly], sum(each.of for each in rates))


def test_the_error_rates_of_the_check_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    lines = [f"{'free words':14}{'false alarms':>19}{'misses':>19}"]
    for part in BOUNDS:
        each = {language: [rate(language, kind, part) for kind in KINDS] for language in LANGUAGES}
        each["all"] = [together(kind, part) for kind in KINDS]
        lines += [f"{name:3} {part:10}{r!s:>19}{w!s:>19}" for name, (r, w) in each.items()]
    lines.append(f"{'cards refused':14}{'tuned on':>19}{'unseen':>19}{'offline model':>19}")
    for language in LANGUAGES:
        each_ = [*(cards(language, part) for part in BOUNDS), offline_cards(language)]
        lines.append(f"{language:14}" + "".join(f"{r!s:>19}" for r in each_))
    with capfd.disabled():  # standard error: the other stream of a worker is not shown
        print("", *lines, sep="\n", file=sys.stderr)


@pytest.mark.parametrize("part", BOUNDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_check_errs_no_more_often_than_it_did(language: str, part: str) -> None:
    for kind, bound in zip(KINDS, BOUNDS[part], strict=True):
        found = rate(language, kind, part)
        assert found.share <= bound, f"{kind}: {found}\n" + "\n".join(found.wrongly)


def test_the_check_holds_on_sentences_that_it_was_not_tuned_on() -> None:
    for kind, bound in zip(KINDS, ALL_UNSEEN, strict=True):
        assert together(kind, "unseen").share <= bound


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_vocabulary_has_the_words_of_ordinary_cards(language: str) -> None:
    for refused in [cards(language, part) for part in BOUNDS]:
        assert refused.share <= CARDS_REFUSED, "\n".join(refused.wrongly)
    assert offline_cards(language).wrongly == []


def test_there_are_enough_different_sentences_in_each_language() -> None:
    assert available() >= set(LANGUAGES)
    for language in LANGUAGES:
        lists = [
            [line for part in sentences(language, kind).values() for line in part] for kind in KINDS
        ]
        assert all(len(set(lines)) == len(lines) >= 200 for lines in lists)
        assert not set(lists[0]) & set(lists[1])


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_the_check_drops_takes_no_data_with_it(
    language: str, database: Database
) -> None:
    both = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"}))
    cards = (("c1", "{order_id}: {status}, {total}"), ("c2", "{order_id}: {status}, {total}"))
    plain = await _answer(database, both, cards, "", language)
    for kind in KINDS:
        for words in sentences(language, kind)["tuned on"][::30]:
            answer = await _answer(database, both, cards, words, language)
            assert cards_of({"answer": answer}) == cards_of({"answer": plain})
            assert plain["message"] in answer["message"]


async def _answer(
    database: Database,
    calls: AIMessage,
    cards: tuple[tuple[str, str], ...],
    words: str,
    language: str,
) -> dict[str, Any]:
    line = answering(*cards, opening=words, closing=words, locale=language)
    graph = graph_of(Scripted(calls, line), database=database)
    answer: dict[str, Any] = (await ask(graph, "A, B?"))["answer"]
    return answer
