"""What the staff's commands work with: the ledger and the desk, without the graph or a model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.desk import SqlDesk
from agent.ledger import Ledger
from agent.settings import Settings
from agent.store import open_database
from agent.write_tools import WriteTools
from tools.database import Database
from tools.policy.action_rules import action_rules
from tools.registry import WRITES
from tools.shop import close_shop, open_shop


@dataclass(frozen=True)
class Office:
    settings: Settings
    database: Database
    ledger: Ledger
    desk: SqlDesk


@asynccontextmanager
async def open_office(settings: Settings) -> AsyncIterator[Office]:
    """Opens the database and the shop, and closes both."""
    database = open_database(settings.database_url)
    shop = open_shop(database, settings.shop_url, settings.shop_token)
    desk = SqlDesk(database)
    tools = WriteTools({tool.name: tool for tool in WRITES}, shop, desk, settings.tool_timeout)
    try:
        ledger = Ledger(database, tools, action_rules(WRITES))
        yield Office(settings, database, ledger, desk)
    finally:
        await close_shop(shop)
        await database.close()
