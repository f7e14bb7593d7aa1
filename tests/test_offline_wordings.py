"""More wordings for the offline model, one a line: what is said, `=>`, the calls it leads to."""

from pathlib import Path

import pytest

from tests.test_offline_reading import Item, expected, rounds, shown

WORDINGS = Path(__file__).with_name("data") / "offline_wordings.txt"


@pytest.mark.parametrize("line", WORDINGS.read_text(encoding="utf-8").splitlines())
async def test_another_wording_is_read(line: str) -> None:
    text, _, calls = line.partition(" =>")
    items: list[Item] = []
    found: list[list[Item]] = []
    for message in text.split(" // "):
        found = await rounds(message, items)
    assert [shown(calls) for calls in found] == expected(calls.strip())
