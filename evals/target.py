"""One case, played: a shop of its own, the real graph, one turn after the other."""

import asyncio
import json
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agent.graph import Graph, build_graph
from agent.identity import stated
from agent.report import report
from agent.settings import Settings
from agent.store import open_database
from evals.case import Case
from evals.faults import FaultyShop
from tools.database import Database
from tools.shop.sql import SqlShop

Build = Callable[..., Graph]
TIMEOUT = 3.0  # seconds that a tool may take in a case where the shop hangs


@dataclass(frozen=True)
class Stage:
    """Where cases are played. `folder` gets a database for each; `template` is what they hold."""

    folder: Path
    settings: Settings
    build: Build = build_graph

    @property
    def template(self) -> Path:
        return self.folder / "template.db"

    async def prepare(self) -> None:
        database = open_database(f"sqlite:///{self.template}")
        await database.prepare()
        await database.close()

    async def play(self, case: Case) -> dict[str, Any]:
        """What came of a case: `turns`, each a report and its history, and its `database`."""
        file = self.folder / f"{uuid.uuid4().hex}.db"
        await asyncio.to_thread(shutil.copy, self.template, file)
        database = open_database(f"sqlite:///{file}")
        try:
            graph = self._graph(case, database)
            turns = [await _turn(graph, turn.ask) for turn in case.turns]
        finally:
            await database.close()
        return {"turns": turns, "database": str(file)}

    def _graph(self, case: Case, database: Database) -> Graph:
        hangs = any(fault.kind == "timeout" for fault in case.faults.values())
        settings = self.settings.model_copy(update={"tool_timeout": TIMEOUT} if hangs else {})
        return self.build(
            checkpointer=InMemorySaver(),
            database=database,
            shop=FaultyShop(SqlShop(database), case.faults),
            identity=stated(case.customer),
            settings=settings,
        )


async def _turn(graph: Graph, text: str) -> dict[str, Any]:
    config: Any = {"configurable": {"thread_id": "case"}}
    question: Any = {"messages": [HumanMessage(text)]}
    await graph.ainvoke(question, config)
    left = await graph.aget_state(config)
    said = report("case", left.values, left.interrupts)
    return {"report": said, "history": _history(left.values["messages"])}


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
