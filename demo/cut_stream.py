"""The second scene: a response breaks off within an order's id, which leaves another order's."""

from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from agent.graph import build_graph
from agent.identity import stated
from agent.settings import Settings
from agent.store import open_database
from agent.toolbox import schemas, toolbox
from agent.wire.connect import OFFLINE_URL, connect
from offline_model import OfflineTransport
from tools.registry import TOOLS

QUESTION = "When will order A-17 arrive?"
CONFIG: Any = {"configurable": {"thread_id": "demo"}}


class CutOnce(httpx2.AsyncBaseTransport):
    """The first response ends, without an error, behind `{"order_id":"A`; later ones are whole."""

    def __init__(self) -> None:
        self._model = OfflineTransport()
        self._cut = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._model.handle_async_request(request)
        if not self._cut:
            self._cut = True
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Half(response.stream)
        return response


class _Half(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = 0
        async for event in self._whole:
            yield event
            pieces += b"function_call_arguments.delta" in event
            if pieces == 2:  # `{"order`, `_id":"A`, and `-17"}` never comes
                return


async def cut_stream(console: Console) -> None:
    """A response breaks off within an order's id."""
    console.print(Text.assemble(("customer: ", "bold"), QUESTION))
    console.print("\nwhat a client makes of it that reads the stream as it comes:")
    for call in await _calls_of_an_unguarded_client():
        arguments = ", ".join(map(str, call["args"].values()))
        console.print(Text(f"  {call['name']}({arguments})  – another order", style="red"))
    console.print("\nwhat happens here:")
    with TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{Path(folder) / 'shop.db'}")
        settings = Settings(model="offline")
        graph = build_graph(
            model=connect(settings, CutOnce()),
            database=database,
            checkpointer=InMemorySaver(),
            identity=stated("C-1001"),
            settings=settings,
        )
        question: Any = {"messages": [HumanMessage(QUESTION)]}
        async for event in graph.astream(question, CONFIG, stream_mode="custom"):
            _show(console, event)
        state = (await graph.aget_state(CONFIG)).values
        await database.close()
    console.print(Panel(Text(state["answer"]["message"]), border_style="green", expand=False))


async def _calls_of_an_unguarded_client() -> list[Any]:
    model = ChatOpenAI(
        model_name="offline",
        openai_api_key=SecretStr("offline"),
        openai_api_base=OFFLINE_URL,
        use_responses_api=True,
        streaming=True,
        http_socket_options=(),
        http_async_client=httpx2.AsyncClient(transport=CutOnce()),
    )
    response = await model.bind_tools(schemas(toolbox(TOOLS, writes=False)), strict=True).ainvoke(
        QUESTION
    )
    return list(response.tool_calls)


def _show(console: Console, event: dict[str, Any]) -> None:
    words = {
        "retry": "↻ the response broke off: nothing of it was run, asked again",
        "call_started": f"▸ asked     {event['tool']}({event['subject']})  {event['call_id']}",
        "call_finished": f"✓ answered  {event['tool']}({event['subject']})  {event['call_id']}",
    }
    if event["event"] in words:
        console.print(Text(f"  {words[event['event']]}"))
