"""Order ids: one spelling each, and never another order's."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from tools.ids import OrderId, normalise_order_id


@pytest.mark.parametrize(
    "typed",
    [
        "A-17",
        " a-17 ",
        "a - 17",
        "#A-17",
        "№ A-17",
        "A\u201117",
        "A\u201317",
        "A\u221217",
        "\uff21\uff0d\uff11\uff17",
        "A-\u0661\u0667",
        "A-\U0001d7cf\U0001d7d5",
        "A\u200b-1\u200d7",
        "A\u00ad-17",
        "\ufeffA-17",
        "A\u00a0-\u202f17",
        "A-1\ufe0f7",
        "A-17\n",
    ],
)
def test_ways_to_type_one_id(typed: str) -> None:
    assert normalise_order_id(typed) == "A-17"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("123", "00123"),
        ("A-1²", "A-12"),
        ("\u0410-17", "A-17"),  # a Cyrillic A
        ("\u0391-17", "A-17"),  # a Greek one
        ("ı-1", "I-1"),
        ("ı-1", "i-1"),
        ("ſ-1", "S-1"),
        ("ß-1", "SS-1"),
        ("ﬁ-1", "FI-1"),
        ("A-\u24601", "A-11"),
        ("O-1", "0-1"),
        ("A17", "A-17"),
        ("A_17", "A-17"),
        ("A/17", "A-17"),
    ],
)
def test_what_looks_alike_stays_two_ids(one: str, other: str) -> None:
    assert normalise_order_id(one) != normalise_order_id(other)


def test_letters_of_every_alphabet_have_one_case() -> None:
    assert normalise_order_id("ж-40") == "Ж-40"
    assert normalise_order_id("e\u0301-1") == normalise_order_id("É-1") == "\u00c9-1"


@pytest.mark.parametrize("nothing", ["", "  ", "#", "\u200b\ufe0f", "№ #"])
def test_no_id_is_said_to_be_none(nothing: str) -> None:
    with pytest.raises(ValueError, match="none is there"):
        normalise_order_id(nothing)


def test_an_id_has_at_most_64_characters() -> None:
    assert normalise_order_id("x" * 64) == "X" * 64
    for long in ("x" * 65, "\u0301" * 1_000_000):
        with pytest.raises(ValueError, match="at most 64"):
            normalise_order_id(long)


@pytest.mark.parametrize("odd", ["A\x00", "\x1b[2J", "A\ud800"])
def test_control_characters_are_refused(odd: str) -> None:
    with pytest.raises(ValueError, match="control characters"):
        normalise_order_id(odd)


@given(st.text(max_size=80))
def test_normalising_twice_is_the_same_as_once(text: str) -> None:
    try:
        once = normalise_order_id(text)
    except ValueError:
        return
    assert normalise_order_id(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert not any(c.isspace() for c in once)


@given(st.text(alphabet="ABCXYZ0123456789-", min_size=1, max_size=64))
def test_a_plain_id_is_left_alone(text: str) -> None:
    assert normalise_order_id(text) == text


def test_a_model_reads_ids_as_text_only() -> None:
    class Asked(BaseModel):
        order_id: OrderId

    assert Asked.model_validate({"order_id": " 00123"}).order_id == "00123"
    for wrong in (123, "", None):
        with pytest.raises(ValidationError):
            Asked.model_validate({"order_id": wrong})
