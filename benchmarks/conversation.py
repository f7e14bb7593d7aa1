"""What a turn costs at the end of a long conversation, beside what it cost at the beginning.

    python -m benchmarks.conversation [--turns 200]

One customer asks about two orders in every turn, on the offline model, with journal and checkpoints
in one SQLite file. The orders of turn 3 are not spoken of again until the very end; by then the
shop has changed one of them. Printed are the CPU of a turn (with the offline model's own share, the
median over neighbouring turns), the bytes of the file, and whether the answers were right.
"""

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import update

from agent.cli.session import Session, open_session
from agent.settings import Settings
from tools.shop import tables

CUSTOMER = "C-1001"
EARLY = ("A", "B-21")  # turn 3 alone is about these
OTHERS = [("A-17", "A-18"), ("B", "A-17"), ("A-18", "B")]
NEIGHBOURS = 5


@dataclass
class Conversation:
    """A conversation that goes on. cpu: seconds of each turn, from the first."""

    session: Session
    thread: str
    cpu: list[float] = field(default_factory=list)

    async def ask_about(self, *orders: str) -> dict[str, str]:
        """One turn about two orders; the statuses that the customer was shown, by order id."""
        question = f"What is the status of {' and '.join(f'order {order}' for order in orders)}?"
        gc.collect()
        before = time.process_time()
        report = await self.session.ask(self.thread, question, lambda event: None)
        self.cpu.append(time.process_time() - before)
        return {card["subject"]: card["values"].get("status", "") for card in report["cards"]}

    async def go_on_to(self, turn: int) -> dict[str, str]:
        """The turns up to this one; what the last of them told."""
        told: dict[str, str] = {}
        while (number := len(self.cpu) + 1) <= turn:
            told = await self.ask_about(*orders_of(number))
        return told

    async def statuses(self) -> dict[str, str]:
        """What the shop holds now, by order id."""
        async with self.session.database.connect() as db:
            rows = await db.execute(tables.orders.select())
            return {row.order_id: row.status for row in rows}

    async def change(self, order: str, status: str) -> None:
        """What the shop does meanwhile."""
        async with self.session.database.begin() as db:
            c = tables.orders.c
            await db.execute(update(tables.orders).where(c.order_id == order).values(status=status))

    def bytes(self) -> int:
        """Of the database with all that still waits beside it."""
        file = Path(str(self.session.database.file))
        return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))


def orders_of(turn: int) -> tuple[str, str]:
    return EARLY if turn == 3 else OTHERS[turn % len(OTHERS)]


@asynccontextmanager
async def begun(folder: Path) -> AsyncIterator[Conversation]:
    settings = Settings(model="offline", database_url=f"sqlite:///{folder / 'long.db'}")
    async with open_session(settings, CUSTOMER) as session:
        yield Conversation(session, await session.thread(None))


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=200)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as folder:
        async with begun(Path(folder)) as conversation:
            await _measure(conversation, turns)


async def _measure(conversation: Conversation, turns: int) -> None:
    told = await conversation.go_on_to(turns)
    shop, size = await conversation.statuses(), conversation.bytes()
    right = told == {order: shop[order] for order in orders_of(turns)}
    early, late = _around(conversation.cpu, 10), _around(conversation.cpu, turns)
    await conversation.change("B-21", "returned")
    again = await conversation.ask_about(*EARLY)
    looked_up = again == {"A": shop["A"], "B-21": "returned"}
    print(f"CPU of turn 10             {early * 1e3:8.1f} ms")
    print(f"CPU of turn {turns:<12}   {late * 1e3:8.1f} ms")
    print(f"ratio                      {late / early:8.2f}")
    print(f"database                   {size / 1e6:8.1f} MB")
    print(f"turn {turns} is right          {_yes(right):>9}")
    print(f"turn 3 looked up again     {_yes(looked_up):>9}")


def _around(cpu: list[float], turn: int) -> float:
    """The median of a turn and its neighbours, as many as there are."""
    return statistics.median(cpu[max(0, turn - 1 - NEIGHBOURS) : turn + NEIGHBOURS])


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "NO"


if __name__ == "__main__":
    asyncio.run(main())
