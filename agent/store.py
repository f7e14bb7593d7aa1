"""The database of a deployment: the shop's tables and the agent's, side by side."""

from agent.migrations import AGENT_BRANCH
from tools.database import Database
from tools.shop.migrations import SHOP_BRANCH


def open_database(url: str) -> Database:
    """Nothing is opened or created before the first use. Raises DatabaseProblem for a bad URL."""
    return Database(url, branches=(SHOP_BRANCH, AGENT_BRANCH))
