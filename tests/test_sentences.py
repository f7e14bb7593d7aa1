"""A language's file that names what is not there is found at the start, not in a turn."""

import shutil
from pathlib import Path

import pytest

from agent.answer.sentences import check_sentences
from tools import locales
from tools.registry import TOOLS, WRITES
from tools.tool import BadDeclaration

WRONG = {
    "a placeholder of nothing": ('[what]\ncancel_order = "x {oops}"', "[what] cancel_order"),
    "a question without the order": ('[questions]\ncancel_order = "Ok?"', "leaves out"),
    "a question about nothing": ('[questions]\ncancel_order = "{order_id} {x}?"', "[questions]"),
    "a card without its value": ('[cards]\ncancel_order = "{state}"', "leaves out ['order_id']"),
    "a form of a card": ('[cards.cancel_order]\nby = "repeated"\nother = "{x}"', "[cards]"),
    "a failure": ('[error]\ntimeout = "{when}"', "[error] timeout"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of languages of the test's own."""
    copied = tmp_path / "locales"
    shutil.copytree(locales.FOLDER, copied)
    monkeypatch.setattr(locales, "FOLDER", copied)
    for cached in (locales.available, locales._locale, locales._read):
        cached.cache_clear()
    return copied


@pytest.fixture(autouse=True)
def _read_again() -> object:
    yield
    for cached in (locales.available, locales._locale, locales._read):
        cached.cache_clear()


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_sentence_that_cannot_be_filled_in_is_refused_by_file_and_key(
    text: str, said: str, folder: Path
) -> None:
    (folder / "xx.toml").write_text(text + "\n")
    with pytest.raises(BadDeclaration) as refused:
        check_sentences([*TOOLS, *WRITES])
    assert "tools/locales/xx.toml" in str(refused.value)
    assert said in str(refused.value)


def test_the_languages_of_the_project_can_say_everything() -> None:
    check_sentences([*TOOLS, *WRITES])
