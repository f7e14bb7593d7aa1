"""`approvals` and `audit`: the staff's side of writes."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from agent.cli.staff import Office, as_json, at_work, by_staff, minute, refuse, show, tell, words
from agent.problems import Problem

if TYPE_CHECKING:
    from agent.ledger_records import Outcome, Record

TURN = click.IntRange(1, 2**31 - 1)  # what a column holds
SHORTEST = 6  # characters of a key that may name a request
SHOWN = (
    *("key", "tool", "subject", "arguments", "customer_id", "thread_id", "role"),
    *("asked_at", "until", "state"),
)
EVENTS = {"waiting": "handed to staff", "claimed": "begun", "given_back": "given back"}


@click.group()
def approvals() -> None:
    """Decide what waits for a member of staff."""


@approvals.command("list")
@as_json
@at_work
async def list_(office: Office, as_json: bool) -> int:
    """List what waits: request, since when, until when, for whom, what, how much."""
    from agent.approvals import Approvals

    waiting = await Approvals(office.ledger).waiting()
    rows = [{name: getattr(record, name) for name in SHOWN} for record in waiting]
    return show(rows, as_json, _request)


@approvals.command()
@click.argument("request")
@by_staff
@at_work
async def approve(office: Office, request: str, staff: str) -> int:
    """Approve a request (its key, or the beginning of it), and carry it out at once."""
    return await _decide(office, request, staff, approve=True)


@approvals.command()
@click.argument("request")
@by_staff
@words("--reason", "Kept beside the request.")
@at_work
async def reject(office: Office, request: str, staff: str, reason: str) -> int:
    """Refuse a request. Nothing is done then."""
    return await _decide(office, request, staff, approve=False, reason=reason)


@click.command()
@click.option("--thread", help="Of this conversation only.")
@click.option("--order", help="About this order only.")
@click.option("--turn", type=TURN, help="Follow this turn of the thread, call by call.")
@as_json
@at_work
async def audit(
    office: Office, thread: str | None, order: str | None, turn: int | None, as_json: bool
) -> int:
    """Print who asked, what was confirmed or approved by whom, and what was done; oldest first.

    With --turn instead: each call of one turn with its arguments, its run, its result, its record
    and its card. Exits with 1 where results are not one to one, or there is no answer.
    """
    from sqlalchemy import select

    from agent import tables

    if turn is not None:
        if thread is None or order is not None:
            raise click.UsageError("--turn goes with --thread, and without --order.")
        return await _accept(office, thread, turn, as_json)
    c = tables.audit.c
    where = [c.thread_id == thread] if thread is not None else []
    where += [c.subject == _order_id(order)] if order is not None else []
    events = await office.ledger.events(*where)
    named = tables.actions.c.key.in_(select(c.key).where(*where))
    about = {record.key: record for record in await office.ledger.records(named)}
    rows = [_with_its_record(event, about.get(event["key"])) for event in events]
    return show(rows, as_json, _event)


async def _accept(office: Office, thread: str, turn: int, as_json: bool) -> int:
    from agent.acceptance import accept
    from tools.shop.records import shown

    report = await accept(office.ledger, thread, turn)
    if report is None:
        raise Problem(
            f"There is no turn {turn} in a thread {shown(thread)}. `threads list` shows the"
            " threads, and how many turns each of them has."
        )
    totals = report["totals"]
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        show(report["calls"], False, _call)
        click.echo(_totals(totals))
    if not totals["answer"]:
        return refuse("The turn has no answer: it still goes on, or was broken off.")
    return 0 if totals["one_to_one"] else 1


def _order_id(typed: str) -> str:
    from tools.ids import normalise_order_id

    try:
        return normalise_order_id(typed)
    except ValueError as error:
        raise Problem(str(error)) from None


async def _decide(office: Office, request: str, staff: str, **decision: Any) -> int:
    from agent.approvals import Approvals, NotDecidable

    desk = Approvals(office.ledger)
    record = _only(request, await desk.named(request))
    try:
        outcome = await desk.decide(record.key, by=staff, **decision)
    except NotDecidable as problem:
        return refuse(problem)
    return tell(*_told(record, outcome, decision["approve"]))


def _only(request: str, found: "list[Record]") -> "Record":
    from tools.shop.records import shown

    if len(request) < SHORTEST or not found:
        raise Problem(
            f"There is no such request: {shown(request)}. Nothing was done. `approvals list` shows"
            f" what waits; the first {SHORTEST} characters of a request are enough."
        )
    if len(found) > 1:
        raise Problem(f"{len(found)} requests begin with {shown(request)}. Nothing was done.")
    return found[0]


def _told(record: "Record", outcome: "Outcome", approve: bool) -> tuple[str, int]:
    what = " ".join([record.tool, record.subject, _amount(record.arguments)]).strip()
    if outcome.error is None:
        return f"Approved. {what}: {outcome.state}.", 0
    if not approve:
        return f"Refused. {what} was not done.", 0
    return f"{what}: {outcome.error['message']} ({outcome.error['kind']})", 1


def _request(row: Mapping[str, Any]) -> list[str]:
    said = {"amount", "currency"}
    rest = {name: value for name, value in row["arguments"].items() if name not in said}
    return [
        row["key"][:8],
        f"{minute(row['asked_at'])} to {minute(row['until'])}",
        f"{row['customer_id']} in {row['thread_id']}",
        f"{row['tool']} {row['subject']} {_amount(row['arguments'])}",
        "; ".join(f"{name}: {value}" for name, value in rest.items() if value != row["subject"]),
    ]


def _with_its_record(event: dict[str, Any], record: "Record | None") -> dict[str, Any]:
    reason = record.reason if record and event["event"] == "refused" else ""
    return {**event, "arguments": record.arguments if record else {}, "reason": reason}


def _event(row: Mapping[str, Any]) -> list[str]:
    from agent import tables

    theirs = row["by"] in ("", row["customer_id"], tables.ERASED)
    approved = row["event"] == "claimed" and not theirs
    event = "approved" if approved else EVENTS.get(row["event"], row["event"])
    return [
        minute(row["at"]),
        f"{row['tool']} {row['subject']} {_amount(row['arguments'])}",
        (f"{event} by {row['by']}" if row["by"] else event)
        + (row["reason"] and f": {row['reason']}"),
        f"{row['customer_id']} in {row['thread_id']}" if row["thread_id"] else row["customer_id"],
        row["key"][:8],
    ]


def _call(row: Mapping[str, Any]) -> list[str]:
    valid = {True: "valid", False: "not valid", None: "not known"}[row["valid"]]
    run = row["seconds"] is not None and f"{row['started_at'][:19]} {row['seconds']:.3f} s"
    return [
        f"round {row['round']}",
        row["call_id"],
        f"{row['tool']} {row['subject']}",
        valid,
        run or "no run on record",
        row["status"] or "",
        f"returned: {row['returned']}",
        ", ".join(filter(None, [row["ledger"], *row["decided"]])),
        row["card"],
    ]


def _totals(totals: Mapping[str, Any]) -> str:
    used, cost = totals["tokens"], totals["cost_usd"]
    tokens = "{input_tokens} in, {output_tokens} out".format(**used) if used else "not kept"
    return (
        f"calls: {totals['calls']}; results one to one: {'yes' if totals['one_to_one'] else 'no'};"
        f" cards: {totals['cards']}; rounds: {totals['rounds']};"
        f" answer: {totals['answer'] or 'none'}; tokens: {tokens};"
        f" cost_usd: {'unknown' if cost is None else cost}"
    )


def _amount(arguments: Mapping[str, Any]) -> str:
    return " ".join(str(arguments[name]) for name in ("amount", "currency") if name in arguments)
