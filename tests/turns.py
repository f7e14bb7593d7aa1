"""Turns through the real graph, as a test asks for them."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from agent.graph import Graph, build_graph
from agent.identity import stated
from tests.scripted import Scripted, calling
from tools.database import Database
from tools.shop import importer
from tools.tool import Arguments, Context, Tool

DEMO_CUSTOMER = "C-1001"
DEMO_ORDERS: dict[str, dict[str, Any]] = {
    order["order_id"]: order
    for order in json.loads(
        (Path(importer.__file__).parent / "demo" / "orders.json").read_text(encoding="utf-8")
    )["orders"]
}
A_AND_B = calling(
    ("c1", "get_order", {"order_id": "A"}),
    ("c2", "get_order", {"order_id": "B"}),
)
THREE = [
    ("c1", "get_order", {"order_id": "A"}),
    ("c2", "get_order", {"order_id": "B"}),
    ("c3", "get_delivery", {"order_id": "A-18"}),
]


def graph_of(model: Any = None, *, customer: str = DEMO_CUSTOMER, **options: Any) -> Graph:
    """The graph with threads in memory, asked by the demo customer."""
    options = {"checkpointer": InMemorySaver(), "identity": stated(customer), **options}
    return build_graph(model=model, **options)


async def ask(graph: Graph, text: str, thread: str = "thread-1", **configurable: Any) -> Any:
    """One turn; the final state."""
    config = config_of(thread, **configurable)
    await graph.ainvoke(question(text), config)
    return (await graph.aget_state(config)).values


async def answered(
    database: Database, *lines: AIMessage, text: str = "How are A and B?", **options: Any
) -> Any:
    """What the customer reads where a model says these lines, in a conversation of its own."""
    graph = graph_of(Scripted(*lines), database=database, **options)
    return (await ask(graph, text, str(uuid4())))["answer"]


def question(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def config_of(thread: str = "thread-1", **configurable: Any) -> Any:
    return {"configurable": {"thread_id": thread, **configurable}}


@dataclass(frozen=True)
class Watched:
    """A turn as a streaming client sees it. steps: (node, the keys that it updated)."""

    state: dict[str, Any]
    events: list[dict[str, Any]]
    steps: list[tuple[str, tuple[str, ...]]]

    def named(self, event: str) -> list[str]:
        """The call ids of the events of one kind, in the order they came."""
        return [each["call_id"] for each in self.events if each["event"] == event]


async def watch(graph: Graph, text: str, thread: str = "thread-1") -> Watched:
    """One turn, streamed."""
    state: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    steps: list[tuple[str, tuple[str, ...]]] = []
    modes: Any = ["updates", "custom", "values"]
    parts: Any = graph.astream(question(text), config_of(thread), stream_mode=modes)
    async for mode, chunk in parts:
        if mode == "custom":
            events.append(chunk)
        elif mode == "updates":
            steps += [(node, tuple(sorted(update or ()))) for node, update in chunk.items()]
        else:
            state = chunk
    return Watched(state, events, steps)


async def pending(graph: Graph, thread: str = "thread-1") -> dict[str, Interrupt]:
    """The pauses of a thread by the call ids that they ask about."""
    pauses = (await graph.aget_state(config_of(thread))).interrupts
    return {pause.value["call_id"]: pause for pause in pauses}


async def decide(graph: Graph, thread: str = "thread-1", **decisions: Any) -> Any:
    """Answers pauses, by call id: "confirm", "reject", or whatever else; the final state."""
    pauses = await pending(graph, thread)
    answers: Any = {pauses[id_].id: own(pauses[id_], word) for id_, word in decisions.items()}
    await graph.ainvoke(Command(resume=answers), config_of(thread))
    return (await graph.aget_state(config_of(thread))).values


def own(pause: Interrupt, decision: Any) -> Any:
    """An answer in our own form; what is no word is sent as it is."""
    if not isinstance(decision, str):
        return decision
    asked = {name: pause.value[name] for name in ("call_id", "digest")}
    return {"decision": decision, **asked}


def told(messages: Iterable[BaseMessage]) -> list[tuple[str, dict[str, Any]]]:
    """What the tool messages tell the model: (call id, output), in their order."""
    return [(m.tool_call_id, json.loads(m.text)) for m in messages if isinstance(m, ToolMessage)]


def results_of(state: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The turn's results by `round/call_id`: (subject, "ok" or the kind of the error)."""
    return {
        key: (result["subject"], result["error"]["kind"] if "error" in result else "ok")
        for key, result in state["results"].items()
    }


def cards_of(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The answer's cards by call id; no two may share one."""
    cards = {card["call_id"]: card for card in state["answer"]["cards"]}
    assert len(cards) == len(state["answer"]["cards"])
    return cards


def finishing(tools: Iterable[Tool], order: Sequence[str]) -> list[Tool]:
    """The tools, made to finish call by call in the given order of call ids, without waiting."""
    gates = {call_id: asyncio.Event() for call_id in order}
    following = dict(pairwise(order))
    gates[order[0]].set()

    def gated(tool: Tool) -> Tool:
        async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
            try:
                return await tool.run(ctx, arguments, call_id)
            finally:
                await gates[call_id].wait()
                if call_id in following:
                    gates[following[call_id]].set()

        return replace(tool, run=run, limit=None)

    return [gated(tool) for tool in tools]


def failing(
    tools: Iterable[Tool], ids: Iterable[str], error: BaseException | None = None
) -> list[Tool]:
    """The tools, made to fail for some call ids, as a service does that is out of order."""
    broken = set(ids)

    def breaking(tool: Tool) -> Tool:
        async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
            if call_id in broken:
                raise error or ConnectionError("the service is out of order")
            return await tool.run(ctx, arguments, call_id)

        return replace(tool, run=run)

    return [breaking(tool) for tool in tools]


def counting(tools: Iterable[Tool], runs: list[str]) -> list[Tool]:
    """The tools, noting the call id of each run."""

    def noting(tool: Tool) -> Tool:
        async def run(ctx: Context | None, arguments: Arguments, call_id: str) -> Any:
            runs.append(call_id)
            return await tool.run(ctx, arguments, call_id)

        return replace(tool, run=run)

    return [noting(tool) for tool in tools]
