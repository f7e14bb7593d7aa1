"""`threads`, `tickets`, `customers`: conversations handed to a person, given back, or erased."""

import click

from agent.cli.staff import Office, as_json, at_work, by_staff, minute, refuse, show, tell, words
from agent.problems import Problem

GONE = ("threads", "turns", "calls", "tickets")
WITHOUT_THEM = ("actions", "audit")
THE_SHOPS = "What the shop itself keeps of customers and orders is the shop's, and was not touched."


@click.group()
def threads() -> None:
    """Look at conversations, give them back to the agent, erase them."""


@click.group()
def tickets() -> None:
    """See which conversations were handed to a person, and deliver them to the help desk."""


@click.group()
def customers() -> None:
    """Erase what is kept of a customer."""


@threads.command("list")
@as_json
@at_work
async def list_threads(office: Office, as_json: bool) -> int:
    """List all conversations: whose, since when, how many turns, whether with a person."""
    from sqlalchemy import func, select

    from agent import tables

    c, turns, handed = tables.threads.c, tables.turns.c, tables.tickets.c
    asked = select(func.count()).where(turns.thread_id == c.thread_id).scalar_subquery()
    waits = (handed.thread_id == c.thread_id) & handed.closed_at.is_(None)
    waiting = select(handed.ticket).where(waits).exists()
    query = select(tables.threads, asked.label("turns"), waiting.label("with_person"))
    async with office.database.connect() as db:
        found = (await db.execute(query.order_by(c.begun_at))).mappings().all()
    return show(
        [dict(row) for row in found],
        as_json,
        lambda row: (
            row["thread_id"],
            row["customer_id"],
            minute(row["begun_at"]),
            row["turns"],
            "with a person" if row["with_person"] else "",
        ),
    )


@threads.command()
@click.argument("thread")
@by_staff
@words("--note", "What the agent is to know of what was done.")
@at_work
async def give_back(office: Office, thread: str, staff: str, note: str) -> int:
    """Return a conversation that is with a person to the agent."""
    from agent import tables
    from agent.journal import ThreadJournal
    from tools.shop.records import shown

    if await office.desk.give_back(thread, staff, note):
        return tell("The agent answers in this thread again.")
    if await ThreadJournal(office.database, thread).owner() is None and not (
        await office.desk.tickets(tables.tickets.c.thread_id == thread)
    ):
        raise Problem(f"There is no such thread: {shown(thread)}. Nothing was done.")
    return refuse("The thread is not with a person. Nothing was done.")


@tickets.command("list")
@as_json
@at_work
async def list_tickets(office: Office, as_json: bool) -> int:
    """List all tickets: thread, customer, since when, how it stands, what is wanted."""
    return show(
        await office.desk.tickets(),
        as_json,
        lambda row: (
            row["ticket"],
            f"{row['customer_id']} in {row['thread_id']}",
            minute(row["opened_at"]),
            "delivered" if row["delivered_at"] else "not delivered",
            f"given back by {row['closed_by']}" if row["closed_at"] else "open",
            row["summary"],
        ),
    )


@tickets.command()
@at_work
async def deliver(office: Office) -> int:
    """Post what the help desk has not got yet to SUPPORT_DESK_URL."""
    from agent.outbox import outbox_of

    outbox = outbox_of(office.settings, office.database)
    if outbox is None:
        raise Problem("No help desk is set: SUPPORT_DESK_URL. Nothing was delivered.")
    if left := await outbox.deliver():
        return refuse(f"{left} could not be delivered. They wait; try again.")
    return tell("Everything is delivered.")


@threads.command()
@click.argument("thread")
@by_staff
@at_work
async def delete(office: Office, thread: str, staff: str) -> int:
    """Erase what is kept of a conversation; which actions were carried out stays on record."""
    return await _erase(office, "thread", thread, staff)


@customers.command()
@click.argument("customer")
@by_staff
@at_work
async def forget(office: Office, customer: str, staff: str) -> int:
    """Erase what is kept of a customer; which actions were carried out stays on record."""
    return await _erase(office, "customer", customer, staff)


async def _erase(office: Office, what: str, name: str, staff: str) -> int:
    """Behind the doors of the threads, so that no turn that is going on writes afterwards."""
    from agent.cli.door import door
    from agent.erasing import NotErasable, erase, threads_of
    from tools.shop.records import shown

    if not name:
        raise Problem(f"No {what} is named. Nothing was done.")
    customer = name if what == "customer" else ""
    found = await threads_of(office.database, customer) if customer else [name]
    async with door(office.database, *found):
        try:
            erased = await erase(office.ledger, found, staff, customer)
        except NotErasable as problem:
            return refuse(problem)
    if not any(erased.values()):
        return tell(f"Nothing is kept of the {what} {shown(name)}.")
    gone, kept = (
        ", ".join(f"{table} {erased[table]}" for table in tables) for tables in (GONE, WITHOUT_THEM)
    )
    return tell(f"Erased: {gone}. Kept, without the person: {kept}. {THE_SHOPS}")
