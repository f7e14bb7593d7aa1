"""`threads` and `customers`: conversations, given back to the agent or erased."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import click

from agent.cli.staff import as_json, at_work, by_staff, minute, refuse, show, tell, words

if TYPE_CHECKING:
    from agent.cli.office import Office

GONE = ("threads", "turns", "calls", "tickets")
WITHOUT_THEM = ("actions", "audit")
THE_SHOPS = "What the shop itself keeps of customers and orders is the shop's, and was not touched."


@click.group()
def threads() -> None:
    """Look at conversations, give them back to the agent, erase them."""


@click.group()
def customers() -> None:
    """Erase what is kept of a customer."""


@threads.command("list")
@as_json
def list_(as_json: bool) -> int:
    """List all conversations: whose, since when, how many turns, whether with a person."""
    from sqlalchemy import func, select

    from agent import tables

    async def work(office: "Office") -> int:
        c = tables.threads.c
        turns, tickets = tables.turns.c, tables.tickets.c
        asked = select(func.count()).where(turns.thread_id == c.thread_id).scalar_subquery()
        waits = (tickets.thread_id == c.thread_id) & tickets.closed_at.is_(None)
        waiting = select(tickets.ticket).where(waits).exists()
        query = select(tables.threads, asked.label("turns"), waiting.label("with_person"))
        async with office.database.connect() as db:
            found = (await db.execute(query.order_by(c.begun_at))).mappings()
            rows = [dict(row) for row in found]
        return show(
            rows,
            as_json,
            lambda row: (
                row["thread_id"],
                row["customer_id"],
                minute(row["begun_at"]),
                row["turns"],
                "with a person" if row["with_person"] else "",
            ),
        )

    return at_work(work)


@threads.command()
@click.argument("thread")
@by_staff
@words("--note", "What the agent is to know of what was done.")
def give_back(thread: str, staff: str, note: str) -> int:
    """Return a conversation that is with a person to the agent."""
    from agent import tables
    from agent.journal import ThreadJournal
    from agent.problems import Problem
    from tools.shop.records import shown

    async def work(office: "Office") -> int:
        if await office.desk.give_back(thread, staff, note):
            return tell("The agent answers in this thread again.")
        if await ThreadJournal(office.database, thread).owner() is None and not (
            await office.desk.tickets(tables.tickets.c.thread_id == thread)
        ):
            raise Problem(f"There is no such thread: {shown(thread)}. Nothing was done.")
        return refuse("The thread is not with a person. Nothing was done.")

    return at_work(work)


@threads.command("delete")
@click.argument("thread")
@by_staff
def delete(thread: str, staff: str) -> int:
    """Erase what is kept of a conversation; which actions were carried out stays on record."""

    async def those(office: "Office") -> Sequence[str]:
        return [thread]

    return _erase(those, staff, thread=thread)


@customers.command()
@click.argument("customer")
@by_staff
def forget(customer: str, staff: str) -> int:
    """Erase what is kept of a customer; which actions were carried out stays on record."""
    from agent.erasing import threads_of

    return _erase(lambda office: threads_of(office.database, customer), staff, customer=customer)


def _erase(named: "Callable[[Office], Awaitable[Sequence[str]]]", staff: str, **whom: str) -> int:
    """Behind the doors of the threads, so that no turn that is going on writes afterwards."""
    from agent.cli.door import door
    from agent.erasing import NotErasable, erase
    from agent.problems import Problem
    from tools.shop.records import shown

    [(what, name)] = whom.items()
    if not name:
        raise Problem(f"No {what} is named. Nothing was done.")

    async def work(office: "Office") -> int:
        found = await named(office)
        async with door(office.database, *found):
            customer = whom.get("customer", "")
            try:
                erased = await erase(office.ledger, found, staff, customer)
            except NotErasable as problem:
                return refuse(problem)
        if not any(erased.values()):
            return tell(f"Nothing is kept of the {what} {shown(name)}.")
        gone, kept = (
            ", ".join(f"{name} {erased[name]}" for name in names) for names in (GONE, WITHOUT_THEM)
        )
        return tell(f"Erased: {gone}. Kept, without the person: {kept}. {THE_SHOPS}")

    return at_work(work)
