"""`tickets`: what is handed to a person, and its delivery to the help desk."""

from typing import TYPE_CHECKING

import click

from agent.cli.staff import as_json, at_work, minute, refuse, show, tell

if TYPE_CHECKING:
    from agent.cli.office import Office


@click.group()
def tickets() -> None:
    """See which conversations were handed to a person, and deliver them to the help desk."""


@tickets.command("list")
@as_json
def list_(as_json: bool) -> int:
    """List all tickets: thread, customer, since when, how it stands, what is wanted."""

    async def work(office: "Office") -> int:
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

    return at_work(work)


@tickets.command()
def deliver() -> int:
    """Post what the help desk has not got yet to SUPPORT_DESK_URL."""
    from agent.outbox import outbox_of
    from agent.problems import Problem

    async def work(office: "Office") -> int:
        outbox = outbox_of(office.settings, office.database)
        if outbox is None:
            raise Problem("No help desk is set: SUPPORT_DESK_URL. Nothing was delivered.")
        if left := await outbox.deliver():
            return refuse(f"{left} could not be delivered. They wait; try again.")
        return tell("Everything is delivered.")

    return at_work(work)
