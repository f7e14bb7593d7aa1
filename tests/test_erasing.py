"""A person is taken out of what is kept, of the file as well; what was done stays on record."""

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import tools.database
from agent import tables
from agent.ledger import Ledger
from agent.ledger_records import Record
from agent.rows import Lost
from tests.commands import environment, finish, here, refused, start
from tests.ledgers import cancelling, escalating, ledger_of, moving, refunding, said, write_of
from tests.offices import (
    FILE,
    demo_shop,
    handed_over,
    on_ledger,
    overwrite,
    table,
    waiting,
    written,
)
from tests.responses_server import held
from tests.responses_server import serving as model_server
from tests.shop_server import TOKEN, ShopServer, serving, status
from tests.test_ledger_outside import on_lookups
from tools.database import Database
from tools.shop.http import HttpShop

MARK = "Zebrafinch"
AWAY = f"9 {MARK} Lane, Salem, OR 97301, US"
NOTHING_LEFT = ("threads", "turns", "calls", "tickets", "checkpoints", "writes")


@pytest.fixture(autouse=True)
def _shop(demo_file: Path) -> None:
    demo_shop(demo_file)


def _thread(customer: str = "C-1001") -> str:
    """A conversation with all kinds of words and writes in it.

    The shop's own list of refunds keeps the reason: that one is not marked.
    """
    asked = here("ask", f"I am {MARK}. Where is order B-21?", "--customer", customer, "--json")
    thread = str(asked.json["thread_id"])
    mine: dict[str, Any] = {"thread": thread, "customer": customer}
    paying = {"order_id": "A", "amount": "5", "currency": "USD", "reason": "late"}
    written(
        write_of("request_refund", paying, call="1/1/c1", **mine),
        write_of("escalate_to_human", {"summary": f"{MARK} wants a person."}, **mine),
        write_of("cancel_order", {"order_id": "A", "reason": MARK}, **mine),
    )
    here("threads", "give-back", thread, "--as", "sam", "--note", f"Rang {MARK}.")
    return thread


def _moved(thread: str) -> None:
    """The address itself is then in the shop's order: the ledger has it beside that."""
    written(moving("A-17", AWAY, thread=thread))
    with closing(sqlite3.connect(FILE)) as db, db:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("UPDATE orders SET address = '' WHERE order_id = 'A-17'")


def _bytes() -> bytes:
    return b"".join(file.read_bytes() for file in Path().glob(f"{FILE}*"))


def _count(kept: str) -> int:
    with closing(sqlite3.connect(FILE)) as db:
        return int(db.execute(f"SELECT count(*) FROM {kept}").fetchone()[0])


def _nothing_is_left(*texts: str) -> None:
    assert [name for name in NOTHING_LEFT if _count(name)] == []
    for text in (MARK, *texts):
        assert text.encode() not in _bytes(), text


@pytest.mark.parametrize("command", ["threads delete THREAD", "customers forget C-1001"])
def test_of_a_person_nothing_is_left_in_the_file(command: str) -> None:
    thread = _thread()
    _moved(thread)
    here("approvals", "reject", waiting(thread=thread), "--as", "kim", "--reason", MARK)
    assert thread.encode() in _bytes()
    done = here(*command.replace("THREAD", thread).split(), "--as", "sam")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "Erased: threads 1, turns 1, calls 1, tickets 1. Kept, without the person: actions 5"
    )
    assert "was not touched" in done.out
    _nothing_is_left(thread)
    assert _count("orders") == 41


def test_the_deeds_stay_on_record_without_the_person() -> None:
    thread = _thread()
    _moved(thread)
    key = waiting(thread=thread)
    here("customers", "forget", "C-1001", "--as", "sam")
    records = {row["key"]: row for row in table(tables.actions)}
    kept = ("customer_id", "thread_id", "call", "reason")
    assert {row[name] for row in records.values() for name in kept} == {""}
    refund, moved = (
        next(row for row in records.values() if (row["tool"], row["state"]) == (tool, "done"))
        for tool in ("request_refund", "change_address")
    )
    nothing = {"order_id": "A", "amount": "5", "currency": "USD"}
    assert refund["arguments"] == {**nothing, "reason": ""}
    assert refund["receipt"] == {**nothing, "state": "done", "repeated": False}
    assert moved["receipt"]["address"] == moved["arguments"]["address"] == ""
    assert (records[key]["state"], records[key]["decided_by"]) == ("refused", "sam")
    trail = here("audit", "--json").json
    assert {row["by"] for row in trail} == {"(erased)", "sam", ""}
    assert {row["customer_id"] + row["thread_id"] for row in trail} == {""}
    assert [(row["event"], row["by"]) for row in trail][-2:] == [
        ("refused", "sam"),
        ("erased", "sam"),
    ]
    assert "request_refund A 5 USD begun by (erased)" in " ".join(here("audit").out.split())


def test_other_people_and_other_conversations_keep_theirs() -> None:
    mine, other, theirs = _thread(), _thread(), _thread("C-1002")
    here("threads", "delete", mine, "--as", "sam")
    assert {row["thread_id"] for row in here("threads", "list", "--json").json} == {other, theirs}
    here("customers", "forget", "C-1001", "--as", "sam")
    assert [row["thread_id"] for row in here("threads", "list", "--json").json] == [theirs]
    again = here("ask", "And now?", "--thread", theirs, "--customer", "C-1002", "--json")
    assert again.json["turn"] == 2
    refused(here("ask", "And now?", "--thread", mine), "no such thread")


def test_erasing_again_changes_nothing() -> None:
    thread = _thread()
    here("threads", "delete", thread, "--as", "sam")
    trail = table(tables.audit)
    for command in (["threads", "delete", thread], ["threads", "delete", "t-\x1b[31m"]):
        done = here(*command, "--as", "sam")
        assert done.code == 0
        assert done.out.startswith("Nothing is kept of the thread 't-")
        assert "\x1b" not in done.out
    forgotten = here("customers", "forget", "C-1001", "--as", "sam")
    assert forgotten.out == "Nothing is kept of the customer 'C-1001'.\n"
    assert table(tables.audit) == trail


@pytest.mark.parametrize("command", ["threads delete", "customers forget"])
def test_nobody_is_erased_by_an_empty_name_or_by_the_customer(command: str) -> None:
    thread = _thread()
    refused(here(*command.split(), "", "--as", "sam"), "is named. Nothing was done")
    whom = thread if command.startswith("threads") else "C-1001"
    waiting(thread=thread)
    done = here(*command.split(), whom, "--as", "C-1001")
    refused(done, "never the customer. Nothing was erased", code=1)
    assert _count("turns") == 1


def test_text_that_earlier_writes_left_in_free_space_goes_too() -> None:
    thread = _thread()
    with closing(sqlite3.connect(FILE)) as db, db:
        db.execute("PRAGMA secure_delete = OFF")
        db.execute("CREATE TABLE other (said TEXT)")
        db.executemany("INSERT INTO other VALUES (?)", [(f"{MARK} {n} " * 50,) for n in range(99)])
        db.execute("DELETE FROM other")
    here("threads", "delete", thread, "--as", "sam")
    _nothing_is_left(thread)


def test_text_in_the_log_of_a_database_that_others_have_open_goes_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools.database, "BUSY_SECONDS", 0.2)
    thread = _thread()
    with closing(sqlite3.connect(FILE, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM turns").fetchone()
        done = here("threads", "delete", thread, "--as", "sam")
        refused(done, "It is erased, but the file may still hold deleted text", code=1)
        assert MARK.encode() in _bytes()
        other.execute("COMMIT")
        assert here("threads", "delete", thread, "--as", "sam").code == 0
        assert Path(f"{FILE}-wal").exists()
        _nothing_is_left(thread)


def test_a_file_that_another_program_writes_to_is_not_said_to_be_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agent import erasing

    monkeypatch.setattr(tools.database, "BUSY_SECONDS", 0.2)
    thread, scrub = _thread(), erasing._scrub

    def beside_a_writer(file: str) -> None:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            scrub(file)

    monkeypatch.setattr(erasing, "_scrub", beside_a_writer)
    done = here("threads", "delete", thread, "--as", "sam")
    refused(done, "It is erased, but the file may still hold deleted text", code=1)


def _unknown(server: ShopServer, thread: str) -> None:
    """A refund of which the shop has not said what became of it."""
    key = waiting(thread=thread)
    here("approvals", "approve", key, "--as", "kim", **server.variables)
    assert [row["state"] for row in table(tables.actions)] == ["unknown"]


@pytest.mark.parametrize("command", ["threads delete thread-1", "customers forget C-1001"])
def test_what_is_not_known_yet_stays_until_it_is_settled(command: str) -> None:
    failing = on_lookups(status(500), changes=status(500))
    with serving(failing) as server:
        _unknown(server, "thread-1")
        before = table(tables.actions), table(tables.audit)
        done = here(*command.split(), "--as", "sam", **server.variables)
        refused(done, "not known yet what became of request_refund A", "Nothing was", code=1)
        assert (table(tables.actions), table(tables.audit)) == before
        server.behave(on_lookups(_good))
        done = here(*command.split(), "--as", "sam", **server.variables)
        assert done.code == 0, done
    [row] = table(tables.actions)
    assert (row["state"], row["customer_id"], row["decided_by"]) == ("done", "", "kim")
    assert server.changes.made == [("# a", "refunds")]


def _good(exchange: Any) -> None:
    exchange.send(exchange.status, exchange.content)


def test_what_somebody_is_at_work_on_is_not_erased() -> None:
    waiting()
    overwrite(tables.actions, state="claimed", until="2999-01-01", outside=True)
    with serving(on_lookups(status(500))) as server:
        done = here("threads", "delete", "thread-1", "--as", "sam", **server.variables)
    refused(done, "not known yet", code=1)


def test_whoever_held_a_record_brings_nothing_back() -> None:
    with serving(_good) as server:

        async def cancel(ledger: Ledger) -> Record:
            shop = HttpShop(server.url, SecretStr(TOKEN))
            outside = ledger_of(ledger.database, shop=shop)
            outcome = await outside.write_once(cancelling("A-17"))
            await shop.close()
            found = await ledger.record(outcome.key)
            assert found is not None
            return found

        held_record = on_ledger(cancel)
        assert held_record.state == "accepted"
        erased = here("threads", "delete", "thread-1", "--as", "sam", **server.variables)
        assert erased.code == 0
    with pytest.raises(Lost):
        on_ledger(lambda ledger: ledger.change(held_record, state="done"))
    [again] = written(cancelling("A-17"))
    assert said(again) == "accepted, again"


def test_what_was_done_is_not_done_again_for_a_customer_who_comes_back() -> None:
    written(refunding("A", "60", call="1/1/c1"))
    here("customers", "forget", "C-1001", "--as", "sam")
    again, more = written(refunding("A", "60", call="1/1/c1"), refunding("A", "60.50"))
    assert (said(again), said(more)) == ("done, again", "awaiting_approval")


def test_a_conversation_of_the_same_name_can_be_handed_over_anew() -> None:
    handed_over()
    here("threads", "delete", "thread-1", "--as", "sam")
    [again] = written(escalating())
    assert said(again) == "done"


def test_what_never_began_begins_as_its_new_customers() -> None:
    broken = {"kind": "not_executed", "message": f"It was broken off by {MARK}."}
    written(moving("A-17", AWAY))
    overwrite(tables.actions, state="failed", error=broken, receipt=None, decided_by="kim")
    [key] = [row["key"] for row in table(tables.actions)]
    here("threads", "delete", "thread-1", "--as", "sam")
    assert table(tables.actions)[0]["error"] == {"kind": "not_executed", "message": ""}
    overwrite(tables.actions, role="refunds")
    refused(here("approvals", "approve", key, "--as", "sam"), "was erased", code=1)
    [again] = written(moving("A-17", AWAY, thread="thread-2"))
    assert said(again) == "done"
    [row] = table(tables.actions)
    assert (row["customer_id"], row["thread_id"]) == ("C-1001", "thread-2")


KILLED = """
import os, signal, sys
from agent import erasing
from agent.cli import main

point = sys.argv.pop(1)
step = getattr(erasing, point)

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def after(*asked):
    await step(*asked)
    die()

setattr(erasing, point, die if point == "_scrub" else after)
main()
"""


@pytest.mark.parametrize("point", ["_forget_checkpoints", "_keep_the_deed", "_erase", "_scrub"])
@pytest.mark.parametrize(
    "command",
    [pytest.param("threads delete THREAD", marks=pytest.mark.long), "customers forget C-1001"],
)
def test_erasing_that_is_killed_at_any_point_is_completed_by_the_next(
    command: str, point: str
) -> None:
    thread = _thread()
    waiting(thread=thread)
    whom = [*command.replace("THREAD", thread).split(), "--as", "sam"]
    killed = subprocess.run([sys.executable, "-c", KILLED, point, *whom], env=environment())
    assert killed.returncode == -signal.SIGKILL
    erased = point == "_scrub"
    assert _count("threads") == (0 if erased else 1)
    assert [row["state"] for row in table(tables.actions)].count("waiting") == (not erased)
    done = here(*whom)
    assert (done.code, done.err) == (0, "")
    _nothing_is_left(thread)
    states = [row["state"] for row in table(tables.actions, "asked_at")]
    assert states == ["done", "done", "failed", "refused"]
    assert [row["event"] for row in table(tables.audit)].count("erased") == 1


def test_a_turn_that_is_going_on_is_not_erased_under_its_feet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.cli.door.PATIENCE", 0.2)
    thread = _thread()
    with model_server(held) as server:
        process = start("ask", "And A-18?", "--thread", thread, **server.variables())
        try:
            assert server.asked.wait(60)
            for command in (["threads", "delete", thread], ["customers", "forget", "C-1001"]):
                refused(here(*command, "--as", "sam"), "Another command is answering")
            assert _count("turns") == 2
        finally:
            process.kill()
            finish(process)
    assert here("threads", "delete", thread, "--as", "sam").code == 0
    _nothing_is_left(thread)


def test_a_conversation_that_begins_meanwhile_is_not_half_erased(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agent import erasing

    step = erasing._forget_checkpoints

    async def begin(database: Database, threads: Any) -> None:
        await step(database, threads)
        with closing(sqlite3.connect(FILE)) as db, db:
            db.execute("INSERT INTO threads VALUES ('t-new', 'C-1001', '2026-11-30')")

    _thread()
    monkeypatch.setattr(erasing, "_forget_checkpoints", begin)
    done = here("customers", "forget", "C-1001", "--as", "sam")
    refused(done, "Something has just changed. Not all was erased; do it again", code=1)
    assert _count("turns") == 1
