"""The first scene: one question, two calls of one tool, and the second answer comes first."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agent.graph import build_graph
from agent.identity import stated
from agent.settings import Settings
from agent.store import open_database
from demo.slow_shop import SlowShop
from tools.shop.sql import SqlShop

QUESTION = "When will orders A and B arrive?"
SLOW = {"A": 1.5, "B": 0.3}
CONFIG: Any = {"configurable": {"thread_id": "demo"}}


async def two_orders(console: Console) -> None:
    """Two orders in one breath; the second call finishes first."""
    with TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{Path(folder) / 'shop.db'}")
        graph = build_graph(
            database=database,
            shop=SlowShop(SqlShop(database), SLOW),
            checkpointer=InMemorySaver(),
            identity=stated("C-1001"),
            settings=Settings(model="offline"),
        )
        console.print(Text.assemble(("customer: ", "bold"), QUESTION))
        question: Any = {"messages": [HumanMessage(QUESTION)]}
        began: float | None = None
        async for event in graph.astream(question, CONFIG, stream_mode="custom"):
            began = began or time.monotonic()  # when the first call starts
            _show(console, event, time.monotonic() - began)
        state = (await graph.aget_state(CONFIG)).values
        await database.close()
    console.print("\nwhat goes back to the model, in the order it asked, each under its own id:")
    for message in state["messages"]:
        if isinstance(message, ToolMessage):
            data = json.loads(str(message.content))["data"]
            told = f"order_id={data['order_id']} promised_date={data['promised_date']}"
            console.print(Text(f"  {message.tool_call_id}  {told}"))
    console.print(
        "\nwhat the customer reads, the values filled in from the result of each card's call:"
    )
    console.print(Panel(Text(state["answer"]["message"]), border_style="green", expand=False))


def _show(console: Console, event: dict[str, Any], seconds: float) -> None:
    words = {"call_started": "▸ asked   ", "call_finished": "✓ answered"}
    if event["event"] in words:
        call = f"{event['tool']}({event['subject']})"
        console.print(
            Text(f"  {seconds:4.1f} s  {words[event['event']]}  {call:18} {event['call_id']}")
        )
