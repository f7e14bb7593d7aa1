"""One case, played: a shop of its own, the real graph, one turn after the other."""

import asyncio
import json
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Any

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
from evals.evaluators import Seen
from evals.faults import BreakingOff, FaultyShop
from evals.truth import Truth, changes, truth_of
from offline_model import OfflineTransport
from tools.database import Database
from tools.shop.importer import ImportProblem, import_shop, read_shop_file

Build = Callable[..., Graph]
TIMEOUT = 3.0  # seconds that a tool may take in a case where the shop hangs
PATIENCE = 60.0  # and in any other: a busy machine is no mistake of the agent
BOUND = ("call_id", "digest")  # what a decision says of its question
MOST_PAUSES = 4  # of a turn; an agent that asks for ever is broken


class OverCap(Exception):
    """As much was spent as was allowed, so the case was not played."""


@dataclass(frozen=True)
class Stage:
    """Where cases are played. `folder` gets a database for each.

    cap: dollars after which nothing more is played; what was `spent` counts, where it is known.
    """

    folder: Path
    settings: Settings
    build: Build = build_graph
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

    async def play(self, case: Case) -> list[Seen]:
        """What came of each turn. Raises OverCap, ValueError where no `breaks` broke anything."""
        if float(sum(self.spent)) > self.cap:
            raise OverCap(f"{self.cap:g} USD are spent")
        file = self.folder / f"{uuid.uuid4().hex}.sqlite"
        await asyncio.to_thread(shutil.copy, self.template(case), file)
        database = open_database(f"sqlite:///{file}")
        before = truth_of(file)
        broken = BreakingOff(OfflineTransport(), case.breaks)
        seen: list[Seen] = []
        try:
            graph = self._graph(case, database, broken)
            for turn in case.turns:
                seen.append(await _turn(graph, case, turn, file, before))
                used = seen[-1].report["usage"]
                self.spent.append(cost(self.settings.model, used) or Decimal(0))
        finally:
            await database.close()
            file.unlink(missing_ok=True)  # the folder is gone where Ctrl-C ended the run
        if broken.left:
            raise ValueError(f"the model gave no responses {sorted(broken.left)} to break off")
        return seen

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


async def _turn(graph: Graph, case: Case, turn: Turn, shop: Path, before: Truth) -> Seen:
    """A turn to its end, or to a pause that the case leaves open. before: the case began."""
    config: Any = {"configurable": {"thread_id": "case"}}
    then: Any = {"messages": [HumanMessage(turn.ask)]}
    asked: list[dict[str, Any]] = []
    held, began = truth_of(shop), time.monotonic()
    for _ in range(MOST_PAUSES):
        await graph.ainvoke(then, config)
        left = await graph.aget_state(config)
        if not left.interrupts:
            break
        already = changes(held, truth_of(shop))
        for each in confirmations(left.values, left.interrupts):
            decision = turn.decide.get(each["subject"])
            asked.append({**each, "changed_already": already, "decision": decision})
        if not (resume := _decided(turn, left.interrupts)):
            break
        then = Command(resume=resume)
    return Seen(
        case,
        turn,
        report=report("case", left.values, left.interrupts),
        history=_history(left.values["messages"]),
        asked=asked,
        truth=truth_of(shop),
        before=before,
        seconds=round(time.monotonic() - began, 3),
    )


def _decided(turn: Turn, pauses: Sequence[Interrupt]) -> dict[str, dict[str, Any]]:
    """What the case's customer says to each question, but to those that they leave open."""
    return {
        pause.id: {"decision": turn.decide[asked["subject"]], **{n: asked[n] for n in BOUND}}
        for pause in pauses
        if (asked := pause.value)["subject"] in turn.decide
    }


def _history(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """The newest turn's messages in plain words (see `evals.evaluators.seen.Seen`)."""
    newest = takewhile(lambda message: message.type != "human", reversed(messages))
    return [_plain(message) for message in newest][::-1]


def _plain(message: AnyMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"told": message.tool_call_id, "output": json.loads(message.text)}
    if isinstance(message, AIMessage) and message.tool_calls:
        return {"asks": [call["id"] for call in message.tool_calls]}
    return {"says": message.text}
