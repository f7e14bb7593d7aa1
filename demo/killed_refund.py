"""The third scene: a process is killed right after a refund was made, and another one goes on.

`python -m demo.killed_refund DATABASE ANSWERS` is the process that is killed.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agent.cli.session import CallDecision, answers
from agent.cli.staff import open_office
from agent.graph import Graph, build_graph
from agent.identity import stated
from agent.report import confirmations
from agent.settings import Settings
from tools.shop.sql import SqlShop

QUESTION = "Please refund 10 USD of order B, it arrived broken."
CONFIG: Any = {"configurable": {"thread_id": "demo"}}


class Mortal(AsyncSqliteSaver):
    """Where a call's result is to be kept, the process ends, as when its machine loses power."""

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        if "results" in dict(writes):
            os.kill(os.getpid(), signal.SIGKILL)
        await super().aput_writes(config, writes, task_id, task_path)


async def killed_refund(console: Console) -> None:
    """A process is killed after a refund, and the next one refunds nothing."""
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "shop.db")
        console.print(Text.assemble(("customer: ", "bold"), QUESTION))
        yes = await _asked(console, file)
        console.print("\na process carries it out, and is killed before it has kept the result:")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, file, json.dumps(yes)
        )
        ended = signal.Signals(-await process.wait()).name
        console.print(Text(f"  ✗ {ended}", style="red"))
        events = await _tell(console, file)
        console.print("\nanother process goes on; the call whose result is missing runs again:")
        async with _opened(file) as graph:
            state = await graph.ainvoke(None, CONFIG)
        await _tell(console, file, events)
    console.print(Panel(Text(state["answer"]["message"]), border_style="green", expand=False))


async def _asked(console: Console, file: str) -> dict[str, Any]:
    """The customer's yes to what waits."""
    async with _opened(file) as graph:
        question: Any = {"messages": [HumanMessage(QUESTION)]}
        await graph.ainvoke(question, CONFIG)
        state = await graph.aget_state(CONFIG)
    [asked] = confirmations(state.values, state.interrupts)
    console.print(Text.assemble(("support:  ", "bold"), asked["question"]))
    console.print(Text.assemble(("customer: ", "bold"), "Yes."))
    return answers([asked], [CallDecision(asked["call_id"], True)])


async def _tell(console: Console, file: str, known: int = 0) -> int:
    """What is new in the audit trail, and what the shop says; how long the trail is."""
    async with open_office(_settings(file)) as office:
        trail = await office.ledger.events()
        order = await SqlShop(office.database).order("B")
    assert order is not None
    for event in trail[known:]:
        about = f"{event['tool']}({event['subject']})"
        console.print(Text(f"  ▸ {event['event']:10}  {about}  by {event['by'] or 'the agent'}"))
    console.print(Text(f"  refunded for order B: {order.refunded} {order.currency}"))
    return len(trail)


@asynccontextmanager
async def _opened(
    file: str, saver: type[AsyncSqliteSaver] = AsyncSqliteSaver
) -> AsyncIterator[Graph]:
    settings, identity = _settings(file), stated("C-1001")
    async with open_office(settings) as office:
        database = office.database
        await database.prepare()
        async with saver.from_conn_string(file) as kept:
            yield build_graph(
                database=database, checkpointer=kept, identity=identity, settings=settings
            )


def _settings(file: str) -> Settings:
    return Settings(model="offline", database_url=f"sqlite:///{file}")


async def _carry_out(file: str, yes: Any) -> None:
    async with _opened(file, Mortal) as graph:
        await graph.ainvoke(Command(resume=yes), CONFIG)


if __name__ == "__main__":
    asyncio.run(_carry_out(sys.argv[1], json.loads(sys.argv[2])))
