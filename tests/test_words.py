"""How often the check of free words errs: promise P6 asks for the figures, so they are printed.

data/words/LANGUAGE.right.txt holds openings and closings that state no fact, .wrong.txt such that
do. Of five lines the lists of words were tuned on three, the others were held out. Both parts were
written by whoever wrote the lists, so they flatter the check; the fairest figures are those of the
lines below the comment in each file, written when the lists were done. A false alarm costs a polite
sentence, a miss may cost the truth. `pytest tests/test_words.py -s` shows the table.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agent.answer.words import FreeWords
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, cards_of, graph_of
from tools.database import Database
from tools.locales import available, locale

DATA = Path(__file__).parent / "data" / "words"
LANGUAGES = ("en", "es", "ru", "zh")
NAMED = ["Dana, A, B and A-18"]  # what the customer has typed before
# The most that each part may err, false alarms and misses: a little above what was measured, so
# that a change of the lists cannot make them worse unseen.
BOUNDS = {"tuned on": (0.02, 0.02), "held out": (0.10, 0.05), "later": (0.30, 0.10)}
ALL_LATER = (0.20, 0.05)  # the same for what was written later in all languages together


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
    early, later = (DATA / f"{language}.{kind}.txt").read_text("utf-8").split("\n# ", 1)
    lines = early.splitlines()
    return {
        "tuned on": [line for place, line in enumerate(lines) if place % 5 < 3],
        "held out": [line for place, line in enumerate(lines) if place % 5 >= 3],
        "later": later.splitlines()[1:],
    }


def rate(language: str, kind: str, part: str) -> Rate:
    """How many sentences of a part are judged wrongly."""
    check = FreeWords.of(locale(language), NAMED)
    all_ = sentences(language, kind)[part]
    return Rate([line for line in all_ if check.allows(line) != (kind == "right")], len(all_))


def together(kind: str, part: str) -> Rate:
    rates = [rate(language, kind, part) for language in LANGUAGES]
    return Rate([line for each in rates for line in each.wrongly], sum(each.of for each in rates))


def test_the_error_rates_of_the_check_are_printed() -> None:
    print(f"\n{'':14}{'false alarms':>18}{'misses':>18}")
    for part in BOUNDS:
        for language in LANGUAGES:
            right, wrong = (rate(language, kind, part) for kind in ("right", "wrong"))
            print(f"{language} {part:10} {right!s:>18}{wrong!s:>18}")
        right, wrong = (together(kind, part) for kind in ("right", "wrong"))
        print(f"{'all ' + part:14}{right!s:>18}{wrong!s:>18}")


@pytest.mark.parametrize("part", BOUNDS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_check_errs_no_more_often_than_it_did(language: str, part: str) -> None:
    for kind, bound in zip(("right", "wrong"), BOUNDS[part], strict=True):
        found = rate(language, kind, part)
        assert found.share <= bound, f"{kind}: {found}\n" + "\n".join(found.wrongly)


def test_the_check_holds_on_sentences_written_after_its_lists() -> None:
    for kind, bound in zip(("right", "wrong"), ALL_LATER, strict=True):
        assert together(kind, "later").share <= bound


def test_there_are_enough_different_sentences_in_each_language() -> None:
    assert available() >= set(LANGUAGES)
    for language in LANGUAGES:
        lists = [
            [line for part in sentences(language, kind).values() for line in part]
            for kind in ("right", "wrong")
        ]
        assert all(len(set(lines)) == len(lines) >= 200 for lines in lists)
        assert not set(lists[0]) & set(lists[1])


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_the_check_drops_takes_no_data_with_it(
    language: str, database: Database
) -> None:
    both = calling(("c1", "get_order", {"order_id": "A"}), ("c2", "get_order", {"order_id": "B"}))
    cards = (("c1", "{order_id} {status} {total}"), ("c2", "{order_id} {status} {total}"))
    plain = await _answer(database, both, cards, "", language)
    for kind in ("right", "wrong"):
        for words in sentences(language, kind)["held out"][::12]:
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
