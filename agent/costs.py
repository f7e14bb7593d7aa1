"""What turns have cost, added up from the journal.

for row in await costs(database, "customer"):
    row["cost_usd"]                       # "0.0123"; None where part of it is not known
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import select

from agent import tables, usage
from tools.database import Database

By = Literal["turn", "thread", "customer", "day"]

_KEYS: Mapping[By, Callable[[Any], str]] = {
    "turn": lambda row: f"{row.thread_id}/{row.turn}",
    "thread": lambda row: str(row.thread_id),
    "customer": lambda row: str(row.customer_id),
    "day": lambda row: str(row.begun_at)[:10],
}


async def costs(database: Database, by: By) -> list[dict[str, Any]]:
    """A row for each turn, thread, customer or day (in UTC), in the order of their first turns.

    unknown: turns whose cost is not known: the model has no price, or the turn never ended.
    known_usd: what the others cost. unreported: responses that broke off before their vendor said
    what they used; nobody knows whether they are billed.
    """
    t, whose = tables.turns.c, tables.threads.c
    query = (
        select(t.thread_id, t.turn, t.begun_at, t.spent, t.cost_usd, whose.customer_id)
        .where(whose.thread_id == t.thread_id)
        .order_by(t.begun_at, t.thread_id, t.turn)
    )
    groups: dict[str, list[Any]] = {}
    async with database.connect() as db:
        for row in await db.execute(query):
            groups.setdefault(_KEYS[by](row), []).append(row)
    return [{by: key, **_sum(rows)} for key, rows in groups.items()]


def _sum(rows: list[Any]) -> dict[str, Any]:
    spent = [each for row in rows for each in row.spent or ()]
    unknown = sum(row.cost_usd is None for row in rows)
    known = usage.plain(sum((Decimal(row.cost_usd or 0) for row in rows), Decimal(0)))
    return {
        "turns": len(rows),
        "responses": len(spent),
        **usage.total(spent),
        "cost_usd": None if unknown else known,
        "known_usd": known,
        "unknown": unknown,
        "unreported": sum(each["usage"] is None for each in spent),
    }
