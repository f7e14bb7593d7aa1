"""Several commands in one thread at the same moment."""

import pytest

from tests import commands

pytestmark = [pytest.mark.on_both("long"), pytest.mark.usefixtures("commands_on")]


@pytest.mark.long
def test_commands_in_one_thread_take_turns() -> None:
    begun = commands.run("ask", "What is the status of order A-17?", "--json")
    thread = begun.json["thread_id"]
    orders = ("A-18", "B-21", "A")
    running = [
        commands.start("ask", f"What is the status of order {o}?", "--thread", thread, "--json")
        for o in orders
    ]
    for order, process in zip(orders, running, strict=True):
        turn = commands.finish(process).json
        assert [call["subject"] for call in turn["calls"]] == [order]
    last = commands.run("ask", "What is the status of order B?", "--thread", thread, "--json")
    assert last.code == 0
    assert last.json["turn"] == 5
