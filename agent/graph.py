"""The graph: a turn from the customer's message to the answer.

START → model ──Send per call──▶ call ──▶ model
          └────────▶ END

Two steps, since each costs a task and a checkpoint; what they do one after the other stands in
`agent/nodes.py`. More than a few reads of a round share tasks; what writes or may pause never does.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent import logs, tracing
from agent import settings as settings_
from agent.accounts import Accounts
from agent.answer.compose import Composer
from agent.answer.sentences import check_sentences
from agent.desk import SqlDesk
from agent.identity import Identity, authenticated
from agent.journal import Journal
from agent.ledger import Ledger
from agent.limits import Limits
from agent.nodes import Nodes
from agent.outbox import outbox_of
from agent.perform import Performer
from agent.settings import Settings
from agent.settling import Settler
from agent.state import Question, State
from agent.store import open_database
from agent.toolbox import AnyTool, schemas, toolbox, writing
from agent.turn import Errand
from agent.wire.client import Client
from agent.write_tools import WriteTools
from agent.writing import Writer
from tools.database import Database
from tools.policy import instructions
from tools.policy import version as policy_version
from tools.policy.action_rules import action_rules
from tools.registry import TOOLS, WRITES
from tools.shop import open_shop
from tools.shop.protocol import Shop

STEPS_PER_ROUND = 2  # model, call

Graph = CompiledStateGraph[State, None, Question, State]


def build_graph(
    *,
    model: BaseChatModel | None = None,
    tools: Iterable[AnyTool] | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    database: Database | str | None = None,
    shop: Shop | None = None,
    identity: Identity | None = None,
    settings: Settings | None = None,
) -> Graph:
    """A support agent as a LangGraph graph, to be run with `ainvoke` and `astream`.

    model: any LangChain chat model; without one, the model that the settings name. Its last message
        is to be the JSON draft that it is asked for; other words are shown only in part.
    tools: ours, or any LangChain tools, whose output is shown to the customer as it is.
    database: where journal and ledger are kept; without one there is no journal, and no writes.
    shop: what our tools look into; without one, the shop that the settings name.
    identity: who is asking; without one, whoever the server authenticated, and SUPPORT_CUSTOMER
        where SUPPORT_LOCAL is set. `agent.identity.stated("C-1001")` is somebody certain.

    Raises Problem for settings or tools that contradict each other, BadDeclaration for a write
    tool that the policy does not know.
    """
    settings = settings or settings_.load()
    tracing.install(settings)
    if isinstance(database, str):
        database = open_database(database)
    shop = shop or open_shop(
        database or open_database(settings.database_url), settings.shop_url, settings.shop_token
    )
    default = [*TOOLS, *WRITES] if database else TOOLS
    box = toolbox(default if tools is None else tools, writes=database is not None)
    check_sentences(box.values())
    desk = SqlDesk(database) if database else None
    ledger = _ledger(database, WriteTools(writing(box), shop, desk, settings.tool_timeout))
    limits = Limits()
    writer = Writer(ledger, limits) if ledger else None
    performer = Performer(box, shop, settings.tool_timeout, limits, writer)
    nodes = Nodes(
        client=Client(model, schemas(box), instructions().text, settings),
        tools=box,
        performer=performer,
        composer=Composer(box),
        identity=identity or authenticated(settings),
        journal=Journal(database),
        settler=Settler(performer, ledger),
        desk=desk if ledger else None,
        outbox=outbox_of(settings, database) if database and ledger else None,
        accounts=Accounts(box, settings.turn_budget),
        settings=settings,
    )
    graph = (
        StateGraph(State, input_schema=Question)
        .add_node("model", nodes.model, destinations=("call", END))
        .add_node("call", nodes.call, input_schema=Errand)
        .add_edge(START, "model")
        .add_edge("call", "model")
        .compile(checkpointer=checkpointer, name="support-agent")
    )
    return graph.with_config(
        recursion_limit=STEPS_PER_ROUND * (settings.max_rounds + 2),
        metadata={"policy_version": policy_version()},
    )


def _ledger(database: Database | None, tools: WriteTools) -> Ledger | None:
    """None for a graph without write tools."""
    if database is None or not tools.by_name:
        return None
    every = {tool.name: tool for tool in WRITES} | dict(tools.by_name)
    return Ledger(database, tools, action_rules(every.values()))


@cache
def _deployed() -> Graph:
    settings = settings_.load()
    logs.install(settings)
    return build_graph(settings=settings, database=settings.database_url)


def __getattr__(name: str) -> Graph:
    """`agent.graph.graph`, the graph of this deployment, built when it is first asked for."""
    if name == "graph":
        return _deployed()
    raise AttributeError(name)
