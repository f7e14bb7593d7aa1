"""How much a turn of N parallel tool calls costs beyond its slowest tool, against named peers.

    python -m benchmarks.fan_out [--calls 2 10 100 1000] [--runs 9] [--saver]

Every contender answers one scripted model response with N calls of one async tool that sleeps up to
50 ms (the slowest call sleeps 50 ms exactly), then the model's last message. All contenders take
turns in one process, each time in another order, so that a machine's moods meet them alike. Printed
are medians: wall time over the slowest tool (1.0 would be free), and CPU per call.
"""

import argparse
import asyncio
import gc
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from agent.graph import build_graph
from agent.settings import Settings

SLOWEST = 0.05
DRAFT = '{"locale":"en","opening":"","cards":[],"closing":""}'


def pause(number: int, calls: int) -> float:
    """Spread over the time that the slowest takes; the first call asked is the slowest."""
    return SLOWEST * (calls - number) / calls


async def look_up(number: int, calls: int) -> str:
    """Looks one thing up."""
    await asyncio.sleep(pause(number, calls))
    return f"result {number}"


TOOLS = [tool(look_up)]


class OneRound(BaseChatModel):
    """Asks for all calls at once, then says its last words."""

    calls: int

    @property
    def _llm_type(self) -> str:
        return "one-round"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._say(messages))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage(DRAFT)
        arguments = [{"number": number, "calls": self.calls} for number in range(self.calls)]
        asked = [tool_call(name="look_up", args=a, id=f"c{a['number']}") for a in arguments]
        return AIMessage("", tool_calls=asked)


Turn = Callable[[], Awaitable[Any]]
Contender = Callable[[int, Any], Turn]  # what is built once for a turn is not measured


def _ours(calls: int, saver: Any) -> Turn:
    graph = build_graph(
        model=OneRound(calls=calls), tools=TOOLS, checkpointer=saver, settings=Settings()
    )
    return lambda: graph.ainvoke({"messages": [HumanMessage("Well?")]}, _thread())


def _create_agent(calls: int, saver: Any) -> Turn:
    from langchain.agents import create_agent

    graph = create_agent(OneRound(calls=calls), TOOLS, checkpointer=saver)
    return lambda: graph.ainvoke({"messages": [HumanMessage("Well?")]}, _thread())


def _tool_node(calls: int, saver: Any) -> Turn:
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    model = OneRound(calls=calls)

    async def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    compiled = graph.compile(checkpointer=saver)
    return lambda: compiled.ainvoke({"messages": [HumanMessage("Well?")]}, _thread())


def _pydantic_ai(calls: int, saver: Any) -> Turn:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def say(messages: Any, info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart(DRAFT)])
        parts = [
            ToolCallPart("look_up", {"number": n, "calls": calls}, tool_call_id=f"c{n}")
            for n in range(calls)
        ]
        return ModelResponse(parts=parts)

    agent = Agent(FunctionModel(say), tools=[look_up])
    return lambda: agent.run("Well?")


def _gather(calls: int, saver: Any) -> Turn:
    return lambda: asyncio.gather(*(asyncio.sleep(pause(n, calls)) for n in range(calls)))


CONTENDERS: dict[str, Contender] = {
    "asyncio.gather": _gather,
    "support-agent": _ours,
    "ToolNode": _tool_node,
    "create_agent": _create_agent,
    "pydantic-ai": _pydantic_ai,
}
WITHOUT_SAVER = {"asyncio.gather", "pydantic-ai"}
_threads = iter(range(10**9))


def _thread() -> Any:
    return {"configurable": {"thread_id": f"t{next(_threads)}"}, "recursion_limit": 100}


async def _measure(turn: Turn) -> tuple[float, float]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await turn()
    return time.perf_counter() - wall, time.process_time() - cpu


async def _table(calls: int, runs: int, saver: Any) -> None:
    names = CONTENDERS.keys() - (WITHOUT_SAVER if saver else set())
    turns = {name: build(calls, saver) for name, build in CONTENDERS.items() if name in names}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    gc.collect()
    gc.freeze()  # as a server does once it has started
    order = random.Random(calls)
    for _ in range(runs + 1):
        # Whoever comes after another LangGraph contender finds its code warm: all take that turn.
        for name in order.sample([*turns], len(turns)):
            seen[name].append(await _measure(turns[name]))
    for name, measured in seen.items():
        wall, cpu = (statistics.median(figures) for figures in zip(*measured[1:], strict=True))
        print(f"{calls:6}  {name:15}  {wall / SLOWEST:8.2f}  {cpu / calls * 1e6:10.0f}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[2, 10, 100, 1000])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--saver", action="store_true", help="with checkpoints in SQLite")
    options = parser.parse_args()
    print(" calls  contender        wall/slowest  µs CPU/call")
    for calls in options.calls:
        if not options.saver:
            await _table(calls, options.runs, None)
            continue
        with tempfile.TemporaryDirectory() as folder:
            async with AsyncSqliteSaver.from_conn_string(str(Path(folder) / "s.db")) as saver:
                await _table(calls, options.runs, saver)


if __name__ == "__main__":
    asyncio.run(main())
