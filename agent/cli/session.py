"""A customer's conversations on this machine: the graph, the threads between commands."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiosqlite
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from sqlalchemy import make_url

from agent.graph import Graph, build_graph
from agent.identity import stated
from agent.journal import ThreadJournal
from agent.problems import Problem, check_question
from agent.report import report
from agent.settings import Settings
from agent.store import open_database
from tools.database import Database
from tools.shop.protocol import Shop
from tools.shop.sql import SqlShop

Watch = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Session:
    """One customer at the command line."""

    graph: Graph
    database: Database
    customer: str

    async def thread(self, wanted: str | None) -> str:
        """The thread to go on with, or the id of a new one. Raises Problem for one not theirs."""
        if wanted is None:
            return f"t-{uuid.uuid4().hex[:12]}"
        if await ThreadJournal(self.database, wanted).owner() != self.customer:
            raise Problem(f"There is no such thread: {wanted}. Nothing was asked.")
        return wanted

    async def ask(self, thread: str, text: str, watch: Watch) -> dict[str, Any]:
        """The report of one turn, told to `watch` while it runs. Raises Problem for no question."""
        check_question(text)
        config: Any = {"configurable": {"thread_id": thread}}
        question: Any = {"messages": [HumanMessage(text)]}
        with self.database.problems():
            async for event in self.graph.astream(question, config, stream_mode="custom"):
                watch(event)
            return report(thread, (await self.graph.aget_state(config)).values)


@asynccontextmanager
async def open_session(
    settings: Settings, customer: str | None, shop: Shop | None = None
) -> AsyncIterator[Session]:
    """Opens the database and the threads. Raises Problem for a customer that the shop lacks."""
    who = settings.customer if customer is None else customer
    database = open_database(settings.database_url)
    try:
        shop = shop or SqlShop(database)
        if await shop.customer(who) is None:
            raise Problem(
                f"The shop has no customer {who!r}; name one with --customer or SUPPORT_CUSTOMER."
                " Nothing was asked."
            )
        async with _saver(database, settings) as saver:
            graph = build_graph(
                checkpointer=saver,
                database=database,
                shop=shop,
                identity=stated(who),
                settings=settings,
            )
            yield Session(graph, database, who)
    finally:
        await database.close()


@asynccontextmanager
async def _saver(database: Database, settings: Settings) -> AsyncIterator[AsyncSqliteSaver]:
    """Checkpoints live in the same SQLite file as the shop and the journal."""
    url = make_url(settings.database_url)
    if url.query:
        raise Problem(
            "A SQLite database takes no options (SUPPORT_DATABASE_URL). Nothing was done."
        )
    if url.get_backend_name() != "sqlite":
        raise Problem("The command line keeps its threads in SQLite; set a sqlite:/// database.")
    await database.prepare()
    async with aiosqlite.connect(str(url.database), timeout=10) as connection:
        yield AsyncSqliteSaver(connection)
