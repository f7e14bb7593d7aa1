"""Histories of a write to an outside service, in any order: crashes, doubt, decisions, repeats.

The service is played in memory: it does under a key what it is asked to, once, and may fail before,
after, or when it is asked what it did.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from agent import tables
from agent.approvals import Approvals, NotDecidable
from agent.ledger import Ledger
from agent.store import open_database
from agent.write_tools import WriteTools
from tests.ledgers import rows, write_of
from tools.failures import NotDone, Refused, ServiceError
from tools.policy.action_rules import ActionRule, Approval
from tools.shop.sql import SqlShop
from tools.tool import Context, Receipt, Tool, tool

NEXT = {
    "": {"claimed", "waiting"},
    "waiting": {"claimed", "refused", "expired"},
    "claimed": {"done", "accepted", "failed", "unknown"},
    "unknown": {"done", "accepted", "failed"},
    "accepted": {"done", "failed"},
    "failed": {"claimed", "waiting", "refused"},  # the last where an approval was broken off
}
Mood = Literal["well", "refuses", "away", "breaks before", "breaks after", "accepts"]
THINGS = st.sampled_from(["red", "blue"])
MOODS = st.sampled_from(["well", "refuses", "away", "breaks before", "breaks after", "accepts"])


class Painted(Receipt):
    thing: str


@dataclass
class Painter:
    """The service: what it painted, by key."""

    mood: Mood = "well"
    answers: bool = True
    painted: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)

    def paint(self, key: str, thing: str) -> Literal["done", "accepted"]:
        if self.mood == "refuses":
            raise Refused("Not today.")
        if self.mood == "away":
            raise NotDone("Nobody is there.")
        if self.mood == "breaks before":
            raise ServiceError("It broke.")
        self.painted[key] = thing
        if self.mood == "breaks after":
            raise ServiceError("It broke.")
        if self.mood == "well":
            self.finished.add(key)
        return self.state(key)

    def state(self, key: str) -> Literal["done", "accepted"]:
        return "done" if key in self.finished else "accepted"

    def find(self, key: str, thing: str) -> Painted | None:
        if not self.answers:
            raise ServiceError("Nobody answers.")
        return Painted(state=self.state(key), thing=thing) if key in self.painted else None

    def tool(self) -> Tool:
        async def find(ctx: Context, arguments: Mapping[str, Any]) -> Painted | None:
            return self.find(ctx.key, arguments["thing"])

        @tool(
            effect="write",
            subject="thing",
            identity=("thing",),
            find=find,
            question="{thing}?",
            sentence="{thing}",
        )
        async def paint(ctx: Context, thing: str) -> Painted:
            """Paints a thing."""
            return Painted(state=self.paint(ctx.key, thing), thing=thing)

        return paint


class Histories(RuleBasedStateMachine):
    file: Path  # a database with the demo shop, to be copied

    @initialize(approved=st.booleans())
    def open(self, approved: bool) -> None:
        self.folder = TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        file = shutil.copy(self.file, self.folder.name)
        database = open_database(f"sqlite:///{file}")
        self.painter, self.calls = Painter(), 0
        paint = self.painter.tool()
        approval = Approval(role="art", hours=1) if approved else None
        rules = {"paint": ActionRule(confirm="customer", approve=approval)}
        tools = WriteTools({"paint": paint}, SqlShop(database), timeout=0.0005)
        self.ledger = Ledger(database, tools, rules, lease=-0.01)
        self.tool = paint

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.run(self.ledger.database.close())
            self.loop.close()
            self.folder.cleanup()

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 20))

    def write(self, thing: str) -> Any:
        self.calls += 1
        return write_of(self.tool, {"thing": thing}, call=f"{self.calls}/1/c1")

    @rule(thing=THINGS, mood=MOODS, answers=st.booleans())
    def ask(self, thing: str, mood: Mood, answers: bool) -> None:
        self.painter.mood, self.painter.answers = mood, answers
        outcome = self.run(self.ledger.write_once(self.write(thing)))
        if outcome.data is not None:
            assert outcome.key in self.painter.painted
            assert outcome.data["thing"] == thing
            assert outcome.data["state"] == "accepted" or outcome.key in self.painter.finished
        elif outcome.error["kind"] in ("refused", "service_error", "not_executed"):
            assert outcome.key not in self.painter.painted

    @rule(thing=THINGS, painted=st.booleans())
    def crash(self, thing: str, painted: bool) -> None:
        """A process claims the action, if it may, and is killed before it has a receipt."""
        write = self.write(thing)
        step = self.run(self.ledger._next(write))
        if not isinstance(step, tuple):
            return
        try:
            record = self.run(self.ledger._claim(write, step[0], step[1], ""))
        except Exception as error:
            assert type(error).__name__ == "Blocked"
            return
        if record.state == "claimed" and painted:
            self.painter.painted[record.key] = thing

    @rule(approve=st.booleans(), mood=MOODS, answers=st.booleans())
    def decide(self, approve: bool, mood: Mood, answers: bool) -> None:
        self.painter.mood, self.painter.answers = mood, answers
        staff = Approvals(self.ledger)
        for request in self.run(staff.waiting()):
            self.run(staff.decide(request.key, approve=approve, by="sam", role="art"))
            if request.key in {each.key for each in self.run(staff.waiting())}:  # broken off
                assert approve
                self.run(staff.decide(request.key, approve=False, by="kim", role="art"))
            with pytest.raises(NotDecidable):
                self.run(staff.decide(request.key, approve=False, by="kim", role="art"))

    @rule(answers=st.booleans())
    def settle(self, answers: bool) -> None:
        self.painter.answers = answers
        for record in self.run(self.ledger.records()):
            self.run(self.ledger.settle(record))

    @rule()
    def finish(self) -> None:
        self.painter.finished |= set(self.painter.painted)

    @invariant()
    def nothing_is_done_twice(self) -> None:
        if hasattr(self, "painter"):
            assert max(Counter(self.painter.painted.values()).values(), default=0) <= 1

    @invariant()
    def each_record_went_the_way_of_a_record(self) -> None:
        if not hasattr(self, "loop"):
            return
        now: dict[str, str] = {}
        for line in self.run(rows(self.ledger.database, tables.audit, "id")):
            if line["event"] == "told_again":  # changes nothing, and needs a receipt to be told
                assert now[line["key"]] in ("done", "accepted"), now
                continue
            assert line["event"] in NEXT[now.get(line["key"], "")], now
            now[line["key"]] = line["event"]
        records = self.run(rows(self.ledger.database, tables.actions))
        assert now == {record["key"]: record["state"] for record in records}
        for record in records:
            assert (record["receipt"] is not None) == (record["state"] in ("done", "accepted"))
            assert (record["state"] != "refused") or record["decided_by"]


@pytest.mark.parametrize(
    "examples", [15, pytest.param(300, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_in_every_history_an_action_is_carried_out_once(examples: int, demo_file: Path) -> None:
    machine = type("OnThisFile", (Histories,), {"file": demo_file})
    chosen = settings(max_examples=examples, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(machine, settings=chosen)
