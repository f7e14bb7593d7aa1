"""A conversation of 200 turns stays right, and small."""

from pathlib import Path

import pytest

from benchmarks.conversation import EARLY, begun, orders_of

TURNS = 200


@pytest.mark.long
async def test_the_last_of_200_turns_are_right_and_an_early_order_is_looked_up_again(
    tmp_path: Path,
) -> None:
    async with begun(tmp_path) as conversation:
        await conversation.go_on_to(TURNS - 3)
        shop = await conversation.statuses()
        for turn in range(TURNS - 2, TURNS + 1):
            told = await conversation.go_on_to(turn)
            assert told == {order: shop[order] for order in orders_of(turn)}
        assert conversation.bytes() < 20_000_000
        await conversation.change("B-21", "returned")
        assert await conversation.ask_about(*EARLY) == {"A": shop["A"], "B-21": "returned"}
