"""What staff finds: the database of the command line, with writes in its ledger."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Table, update

from agent.ledger import Ledger
from agent.ledger_records import Outcome, Write
from tests.commands import COMMON
from tests.ledgers import escalating, ledger_at, refunding, rows

FILE = "support-agent.db"
T = TypeVar("T")


def demo_shop(demo_file: Path) -> None:
    """The file that commands use in the working directory of the test, ready-made."""
    shutil.copy(demo_file, FILE)


def on_ledger(work: Callable[[Ledger], Awaitable[T]], **options: Any) -> T:
    async def run() -> T:
        ledger = ledger_at(COMMON.get("SUPPORT_DATABASE_URL", f"sqlite:///{FILE}"), **options)
        try:
            return await work(ledger)
        finally:
            await ledger.database.close()

    return asyncio.run(run())


def written(*writes: Write, **options: Any) -> list[Outcome]:
    async def work(ledger: Ledger) -> list[Outcome]:
        return [await ledger.write_once(write) for write in writes]

    return on_ledger(work, **options)


def waiting(amount: str = "120", **more: Any) -> str:
    """The key of a refund that waits for staff."""
    [outcome] = written(refunding("A", amount, call="1/1/c1", **more))
    assert outcome.state == "waiting"
    return outcome.key


def handed_over(thread: str = "thread-1") -> str:
    """The ticket of a conversation that is with a person."""
    [outcome] = written(escalating(thread=thread))
    assert outcome.data is not None
    return str(outcome.data["ticket"])


def table(kept: Table, *order: Any) -> list[dict[str, Any]]:
    async def work(ledger: Ledger) -> list[dict[str, Any]]:
        return [dict(row) for row in await rows(ledger.database, kept, *order)]

    return on_ledger(work)


def overwrite(kept: Table, **values: Any) -> None:
    """Changes all rows of a table behind the product's back."""

    async def work(ledger: Ledger) -> None:
        async with ledger.database.begin() as db:
            await db.execute(update(kept).values(values))

    on_ledger(work)
