"""The acceptance report of a turn: call, execution, return, answer and cost, as they were kept.

It only reads: journal, ledger and audit trail say what was, and nothing is looked up anew.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select

from agent import tables, usage
from agent.answer.cards import Spoken
from agent.answer.cards import records as answered
from agent.calls import key_of
from agent.ledger import Ledger
from agent.ledger_records import Record
from tools.registry import TOOLS, WRITES

BY_NAME = {tool.name: tool for tool in (*TOOLS, *WRITES)}
INVALID = ("invalid_arguments", "unknown_tool")
UNCHECKED = ("not_executed", "not_kept")
NEVER_RAN = (*INVALID, *UNCHECKED, "rejected", "awaiting_approval")

Row = Mapping[str, Any]


async def accept(ledger: Ledger, thread: str, turn: int) -> dict[str, Any] | None:
    """The report of a turn, see `report`; None where there is no such turn."""
    t, c, a, e = tables.turns.c, tables.calls.c, tables.actions.c, tables.audit.c
    asked = select(tables.turns).where(t.thread_id == thread, t.turn == turn)
    made = select(tables.calls).where(c.thread_id == thread, c.turn == turn)
    async with ledger.database.connect() as db:
        this = (await db.execute(asked)).mappings().one_or_none()
        calls = (await db.execute(made.order_by(c.round, c.place))).mappings()
        kept = [dict(row) for row in calls]
    if this is None:
        return None
    own = (a.thread_id == thread) & a.call.startswith(f"{turn}/")
    named = [row["result"]["action"] for row in kept if "action" in (row["result"] or ())]
    records = await ledger.records(own | a.key.in_(named))
    undone = (e.thread_id == thread) & e.event.in_(("rejected", "withdrawn"))
    confirmed = e.key.in_([record.key for record in records]) & (e.event == "confirmed")
    return report(dict(this), kept, records, await ledger.events(undone | confirmed))


def report(
    turn: Row, calls: Sequence[Row], records: Sequence[Record], events: Sequence[Row]
) -> dict[str, Any]:
    """A row for each call in the order of the requests, and totals.

    turn, calls, events: rows of the tables `turns`, `calls` and `audit`. records: the ledger's of
    these calls; where the journal lacks one of them, it is a call without a result.

    `valid` is None where it is not known whether the arguments were. The times are None where
    nothing ran, or nobody knows when; `seconds` has in it what a write waited for staff. `returned`
    is "yes", or says what is wrong. Tokens are None where they were not kept, the cost
    where it is not known.
    """
    answer, here = turn["answer"] or {}, (turn["thread_id"], f"{turn['turn']}/")
    places = {here[1] + key_of(row["call"]) for row in calls}
    own = [r for r in records if r.thread_id == here[0] and r.call.startswith(here[1])]
    lost = [_unreturned(record) for record in own if record.call not in places]
    kept = sorted([*calls, *lost], key=lambda row: int(row["call"]["round"]))
    given = Counter(_given(row) for row in kept if row["result"])
    cards = answer.get("cards", [])
    rows = [
        {
            **_executed(row),
            "returned": _returned(row, given),
            **_decided(row, turn, records, events),
            "card": card,
        }
        for row, card in zip(kept, _mentions(kept, cards), strict=True)
    ]
    totals = {
        "calls": len(rows),
        "one_to_one": all(row["returned"] == "yes" for row in rows),
        "cards": len(cards),
        "rounds": max((row["round"] for row in rows), default=0) + bool(answer),
        "answer": answer.get("status"),
        "tokens": None if turn["spent"] is None else usage.total(turn["spent"]),
        "cost_usd": turn["cost_usd"],
    }
    return {"thread_id": turn["thread_id"], "turn": turn["turn"], "calls": rows, "totals": totals}


def _unreturned(record: Record) -> Row:
    """A call of which only the ledger knows."""
    _, round, call_id = record.call.split("/", 2)
    call = {"call_id": call_id, "name": record.tool, "round": int(round)}
    return {"call": call, "subject": record.subject, "result": None}


def _given(row: Row) -> tuple[int, str]:
    return row["call"]["round"], row["result"]["call_id"]


def _executed(row: Row) -> dict[str, Any]:
    call, result = row["call"], row["result"] or {}
    kind = result.get("error", {}).get("kind")
    ran = result and kind not in NEVER_RAN
    begun, ended = (result[name] if ran else None for name in ("started_at", "finished_at"))
    return {
        "round": call["round"],
        "call_id": call["call_id"],
        "tool": call["name"],
        "subject": row["subject"],
        "valid": None if not result or kind in UNCHECKED else kind not in INVALID,
        "started_at": begun,
        "finished_at": ended,
        "seconds": _seconds(begun, ended),
        "status": kind or result.get("status"),
    }


def _seconds(begun: str | None, ended: str | None) -> float | None:
    if begun is None or ended is None:
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()


def _returned(row: Row, given: Mapping[tuple[int, str], int]) -> str:
    call, result = row["call"], row["result"]
    if not result:
        return "no result"
    if (result["call_id"], result["tool"]) != (call["call_id"], call["name"]):
        return f"under another call: {result['tool']} {result['call_id']}"
    return "yes" if given[_given(row)] == 1 else f"{given[_given(row)]} results"


def _decided(
    row: Row, turn: Row, records: Sequence[Record], events: Sequence[Row]
) -> dict[str, Any]:
    """The state of a write in the ledger, and who decided on it."""
    call, result = row["call"], row["result"] or {}
    tool, place = BY_NAME.get(call["name"]), (turn["thread_id"], f"{turn['turn']}/{key_of(call)}")
    if tool is None or tool.effect == "read":
        return {"ledger": None, "decided": []}
    own = [r for r in records if r.key == result.get("action") or (r.thread_id, r.call) == place]
    record = own[-1] if own else None
    about = {"tool": call["name"], "subject": row["subject"], "key": record.key if record else ""}
    said = [event for event in events if about.items() <= event.items()]
    if record is None:  # nothing but its time tells which call an event is about
        times = turn["begun_at"], result.get("finished_at", "")
        said = [event for event in said if times[0] <= event["at"] <= times[1]]
    by = [(event["event"], event["by"]) for event in said[-1:]]
    if record and record.decided_by:
        by.append(("refused" if record.state == "refused" else "approved", record.decided_by))
    decided = [f"{what} by {who}" for what, who in by]
    return {"ledger": record.state if record else "no record", "decided": decided}


def _mentions(rows: Sequence[Row], cards: Sequence[Row]) -> list[str]:
    """Which card speaks of each call. A card names no round: of two such calls the later has it."""
    results = {key_of(row["call"]): row["result"] for row in rows if row["result"]}
    spoken = Spoken(answered([row["call"] for row in rows], results), BY_NAME)
    needed = {record.place for record in spoken.records}
    left: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for number, card in enumerate(cards, start=1):
        name = "card" if card["source"] == "model" else "default card"
        left[_about(card)].append(f"{name} {number}")
    found = {
        place: left[_about(rows[place]["result"])].pop()
        for place in sorted(needed, reverse=True)
        if left[_about(rows[place]["result"])]
    }
    return [found.get(n) or _unmentioned(row, n in needed) for n, row in enumerate(rows)]


def _about(told: Row) -> tuple[str, ...]:
    return told["call_id"], told["tool"], told["subject"]


def _unmentioned(row: Row, needed: bool) -> str:
    tool, result = BY_NAME.get(row["call"]["name"]), row["result"]
    if result and not needed:
        return "not mentioned: a later call tells it"
    optional = result and result["status"] == "ok" and tool and tool.card == "optional"
    return "not mentioned: optional" if optional else "not mentioned"
