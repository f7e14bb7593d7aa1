"""A customer's conversations on this machine: the graph, the threads between commands."""

import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from langchain_core.messages import HumanMessage
from langgraph.types import Command, StateSnapshot

from agent import logs, tracing
from agent.checkpoints import open_saver
from agent.cli.door import door
from agent.graph import Graph, build_graph
from agent.identity import stated
from agent.journal import ThreadJournal
from agent.plain import is_text
from agent.problems import Problem, check_question
from agent.report import confirmations, report
from agent.settings import Settings
from agent.store import open_database
from agent.wire.connect import connect
from tools.database import Database, DatabaseProblem
from tools.failures import ToolFailure
from tools.shop import close_shop, open_shop
from tools.shop.protocol import Shop
from tools.shop.records import shown

Watch = Callable[[dict[str, Any]], None]


class CallDecision(NamedTuple):
    """The customer's answer to the confirmation of one call."""

    call_id: str
    confirmed: bool
    reason: str = ""


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
            raise Problem(f"There is no such thread: {shown(wanted)}. Nothing was asked.")
        await self._check_kept(wanted)
        return wanted

    async def _check_kept(self, thread: str) -> None:
        try:
            kept = await self._snapshot(thread)
        except DatabaseProblem:
            raise
        except Exception as error:  # whatever it is that damaged bytes turn into
            raise Problem(
                f"What is kept of the thread {shown(thread)} is damaged"
                f" ({type(error).__name__}). Nothing was asked; begin another one."
            ) from error
        # The newest checkpoint is the one of the latest time, so the next turn would be lost.
        if kept.created_at and datetime.fromisoformat(kept.created_at) > datetime.now(UTC):
            raise Problem(
                f"This machine's clock is behind the last turn of the thread {shown(thread)}"
                f" ({kept.created_at}). Nothing was asked; set the clock, or begin another thread."
            )

    async def _snapshot(self, thread: str) -> StateSnapshot:
        with self.database.problems():
            return await self.graph.aget_state(_config(thread))

    async def ask(self, thread: str, text: str, watch: Watch) -> dict[str, Any]:
        """The report of one turn, told to `watch` while it runs. Raises Problem for no question."""
        check_question(text)
        async with door(self.database, thread):
            return await self._go_on(thread, {"messages": [HumanMessage(text)]}, watch)

    async def decide(
        self, thread: str, decisions: Sequence[CallDecision], watch: Watch
    ) -> dict[str, Any]:
        """The report of the turn after the customer's answers to its pending confirmations.

        A turn that took its answers and was broken off is gone on with: what it has begun is told.
        Raises Problem, with nothing done, where one of them is for a call that is not pending.
        """
        async with door(self.database, thread):
            asked = await self.pending(thread)
            if not asked and await self._is_broken_off(thread, decisions):
                return await self._go_on(thread, None, watch)
            return await self._go_on(thread, Command(resume=answers(asked, decisions)), watch)

    async def _is_broken_off(self, thread: str, decisions: Sequence[CallDecision]) -> bool:
        """Whether the thread's turn has not ended, and these are calls of it."""
        state = (await self._snapshot(thread)).values
        calls = {call["call_id"] for call in state.get("calls", ())}
        return bool(state.get("round")) and {each.call_id for each in decisions} <= calls

    async def pending(self, thread: str) -> list[dict[str, Any]]:
        """The confirmations that the thread waits for."""
        snapshot = await self._snapshot(thread)
        return confirmations(snapshot.values, snapshot.interrupts)

    async def _go_on(self, thread: str, what: Any, watch: Watch) -> dict[str, Any]:
        trace = tracing.run_id()
        config: Any = {**_config(thread), "run_id": trace}
        # What this run left. The thread's newest state may be another's that ran meanwhile.
        state: dict[str, Any] = {}
        try:
            with self.database.problems():
                stream: Any = self.graph.astream(what, config, stream_mode=["custom", "values"])
                async for mode, event in stream:
                    if mode == "custom":
                        watch(event)
                    else:
                        state = event
            if state["answer"]:
                return report(thread, state, trace=tracing.told(trace))
            snapshot = await self._snapshot(thread)
        except DatabaseProblem as problem:
            raise type(problem)(f"{problem} The turn was not finished.") from problem
        if not confirmations(snapshot.values, snapshot.interrupts):
            raise Problem("The turn waits for something that this command cannot answer.")
        return report(thread, snapshot.values, snapshot.interrupts, tracing.told(trace))


def answers(
    asked: Sequence[Mapping[str, Any]], decisions: Sequence[CallDecision]
) -> dict[str, Any]:
    """The decisions as LangGraph takes them, by the id of each pause. Raises Problem."""
    pending = {each["call_id"]: each for each in asked}
    if not pending:
        raise Problem(
            "Nothing waits for a confirmation in this thread. Nothing was done by this;"
            " `support-agent audit` says what was done before."
        )
    given: dict[str, Any] = {}
    for each in decisions:
        if each.call_id not in pending:
            raise Problem(
                f"No confirmation is pending for {shown(each.call_id)}, but for"
                f" {', '.join(map(shown, pending))}. Nothing was done."
            )
        waits = pending[each.call_id]
        if waits["interrupt_id"] in given:
            raise Problem(f"The call {shown(each.call_id)} was decided twice. Nothing was done.")
        given[waits["interrupt_id"]] = {
            "decision": "confirm" if each.confirmed else "reject",
            "call_id": each.call_id,
            "digest": waits["digest"],
            "reason": each.reason,
        }
    return given


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@asynccontextmanager
async def open_session(settings: Settings, customer: str | None) -> AsyncIterator[Session]:
    """Opens the database and the threads. Raises Problem for a customer that the shop lacks."""
    who = settings.customer if customer is None else customer
    if not is_text(who):
        raise Problem("The customer's id is not text. Nothing was asked.")
    logs.install(settings)
    model = connect(settings)
    database = open_database(settings.database_url)
    shop = open_shop(database, settings.shop_url, settings.shop_token)
    try:
        await _check_customer(shop, who)
        async with open_saver(database) as saver:
            graph = build_graph(
                model=model,
                checkpointer=saver,
                database=database,
                shop=shop,
                identity=stated(who),
                settings=settings,
            )
            yield Session(graph, database, who)
    finally:
        await close_shop(shop)
        await database.close()


async def _check_customer(shop: Shop, who: str) -> None:
    try:
        customer = await shop.customer(who)
    except ToolFailure as failure:
        raise Problem(
            f"{failure.message} Nothing was asked; see SUPPORT_SHOP_URL and SUPPORT_SHOP_TOKEN."
        ) from None
    if customer is None:
        raise Problem(
            f"The shop has no customer {shown(who)}; name one with --customer or SUPPORT_CUSTOMER."
            " Nothing was asked."
        )
