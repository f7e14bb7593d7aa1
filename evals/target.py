"""One case, played: a shop of its own, the real graph, one turn after the other."""

import asyncio
import json
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from agent.graph import Graph, build_graph
from agent.identity import stated
from agent.pricing import cost
from agent.problems import Problem
from agent.report import confirmations, report
from agent.settings import Settings
from agent.store import open_database
from agent.wire.connect import connect
from evals.case import Case, Turn
from evals.cases import FOLDER
from evals.faults import BreakingOff, FaultyShop
from evals.truth import Truth, changes, truth_of
from offline_model import OfflineTransport
from tools.database import Database
from tools.shop.importer import ImportProblem, import_shop, read_shop_file

Build = Callable[..., Graph]
TIMEOUT = 3.0  # seconds that a tool may take in a case where the shop hangs
PATIENCE = 60.0  # and in any other: a busy machine is no mistake of the agent
MOST_PAUSES = 4  # of a turn; an agent that asks for ever is broken


class OverCap(Exception):
    """As much was spent as was allowed, so the case was not played."""


@dataclass(frozen=True)
class Stage:
    """Where cases are played. `folder` gets a database for each.

    truths: what the shop of each case that was played held, before and after each turn.
    cap: dollars after which nothing more is played; what was `spent` counts, where it is known.
    """

    folder: Path
    settings: Settings
    build: Build = build_graph
    truths: dict[str, list[Truth]] = field(default_factory=dict)
    cap: float = inf
    spent: list[Decimal] = field(default_factory=list)

    async def prepare(self) -> None:
        """Raises Problem for a shop's file with a mistake."""
        await open_database(f"sqlite:///{self.folder / 'demo.db'}").prepare()
        for own in (path for path in FOLDER.glob("*/shop.*") if path.suffix in (".json", ".csv")):
            database = open_database(f"sqlite:///{self.folder / own.parent.name}.db")
            try:
                await import_shop(database, read_shop_file(own), empty=True)
            except ImportProblem as problem:
                raise Problem(f"{problem}\nNo case was run.") from None
            finally:
                await database.close()

    def template(self, case: Case) -> Path:
        """The database that a case begins with."""
        own = self.folder / f"{case.name.partition('/')[0]}.db"
        return own if own.is_file() else self.folder / "demo.db"

    async def play(self, case: Case) -> dict[str, Any]:
        """What came of a case: `turns`, each with report, history and pauses; `truths`, its key."""
        if float(sum(self.spent)) > self.cap:
            raise OverCap(f"{self.cap:g} USD are spent")
        name = uuid.uuid4().hex
        file = self.folder / f"{name}.sqlite"
        await asyncio.to_thread(shutil.copy, self.template(case), file)
        database = open_database(f"sqlite:///{file}")
        truths = self.truths[name] = [truth_of(file)]
        broken = BreakingOff(OfflineTransport(), case.breaks)
        try:
            graph = self._graph(case, database, broken)
            turns = []
            for turn in case.turns:
                turns.append(await _turn(graph, turn, partial(truth_of, file), truths[-1]))
                used = turns[-1]["report"]["usage"]
                self.spent.append(cost(self.settings.model, used) or Decimal(0))
                truths.append(truth_of(file))
        finally:
            await database.close()
            file.unlink(missing_ok=True)  # the folder is gone where Ctrl-C ended the run
        if broken.left:
            raise ValueError(f"the model gave no responses {sorted(broken.left)} to break off")
        return {"turns": turns, "truths": name}

    def _graph(self, case: Case, database: Database, broken: BreakingOff) -> Graph:
        hangs = any(fault.kind == "timeout" for fault in case.faults.values())
        settings = self.settings.model_copy(update={"tool_timeout": TIMEOUT if hangs else PATIENCE})
        return self.build(
            model=connect(settings, broken) if case.breaks else None,
            checkpointer=InMemorySaver(),
            database=database,
            shop=FaultyShop(database, case.faults),
            identity=stated(case.customer),
            settings=settings,
        )


async def _turn(
    graph: Graph, turn: Turn, shop: Callable[[], Truth], before: Truth
) -> dict[str, Any]:
    """A turn to its end, or to a pause that the case leaves open."""
    config: Any = {"configurable": {"thread_id": "case"}}
    then: Any = {"messages": [HumanMessage(turn.ask)]}
    asked: list[dict[str, Any]] = []
    began = time.monotonic()
    for _ in range(MOST_PAUSES):
        await graph.ainvoke(then, config)
        left = await graph.aget_state(config)
        if not left.interrupts:
            break
        already = changes(before, shop())
        for each in confirmations(left.values, left.interrupts):
            decision = turn.decide.get(each["subject"])
            asked.append({**each, "changed_already": already, "decision": decision})
        decided = {pause.id: _answer(pause, turn) for pause in left.interrupts}
        if not (resume := {id_: answer for id_, answer in decided.items() if answer}):
            break
        then = Command(resume=resume)
    stated = turn.model_dump(mode="json", exclude={"ask"}, exclude_defaults=True)
    return {
        "ask": turn.ask,
        "expected": yaml.safe_dump(stated, allow_unicode=True, default_flow_style=None),
        "report": report("case", left.values, left.interrupts),
        "history": _history(left.values["messages"]),
        "asked": asked,
        "seconds": round(time.monotonic() - began, 3),
    }


def _answer(pause: Interrupt, turn: Turn) -> dict[str, Any] | None:
    """What the case's customer says to a question; None where they leave it open."""
    decision = turn.decide.get(pause.value["subject"])
    bound = {name: pause.value[name] for name in ("call_id", "digest")}
    return {"decision": decision, **bound} if decision else None


def _history(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The newest turn's messages in plain words (see `evals.evaluators.seen.Seen`)."""
    asked = [place for place, message in enumerate(messages) if message.type == "human"]
    return [_plain(message) for message in messages[asked[-1] + 1 :]] if asked else []


def _plain(message: AnyMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"told": message.tool_call_id, "output": json.loads(message.text)}
    if isinstance(message, AIMessage) and message.tool_calls:
        return {"asks": [call["id"] for call in message.tool_calls]}
    return {"says": message.text}
