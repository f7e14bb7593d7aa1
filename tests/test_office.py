"""The staff's commands: what waits, who decided, what was done, whom a conversation is with."""

import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, func

import tools.database
from agent import tables
from agent.desk import SqlDesk
from agent.ledger import Ledger
from agent.migrations import AGENT_BRANCH
from tests.commands import COMMAND, Done, environment, finish, here, refused, start
from tests.ledgers import cancelling, refunded, refunding
from tests.offices import (
    handed_over,
    on_ledger,
    overwrite,
    table,
    waiting,
    written,
)
from tests.shop_server import serving, status
from tests.test_ledger_outside import on_lookups
from tools.database import Branch, Database
from tools.tool import Context

HOSTILE = "\x1b[31mdone\nT-1 \u202eelbanod"
CLEANED = "[31mdone T-1 elbanod"


pytestmark = [pytest.mark.on_both("long"), pytest.mark.usefixtures("commands_on")]


def _refunded() -> list[tuple[str, str]]:
    return on_ledger(lambda ledger: refunded(ledger.database))


def test_what_waits_is_listed_approved_and_carried_out_at_once() -> None:
    written(refunding("A", "5"))
    key = waiting(thread="thread-2")
    [request] = here("approvals", "list", "--json").json
    assert request.pop("asked_at") < request.pop("until")
    assert request == {
        "key": key,
        "tool": "request_refund",
        "subject": "A",
        "arguments": {
            "order_id": "A",
            "amount": "120",
            "currency": "USD",
            "reason": "arrived late",
        },
        "customer_id": "C-1001",
        "thread_id": "thread-2",
        "role": "refunds",
        "state": "waiting",
    }
    listed = here("approvals", "list")
    assert listed.code == 0
    assert listed.out.startswith(key[:8])
    for part in ("C-1001 in thread-2", "request_refund A 120 USD", "reason: arrived late"):
        assert part in listed.out
    approved = here("approvals", "approve", key[:8], "--as", "sam")
    assert (approved.code, approved.out) == (0, "Approved. request_refund A 120 USD: done.\n")
    assert _refunded() == [("A", "5"), ("A", "120")]
    assert here("approvals", "list", "--json").json == []
    assert here("approvals", "list").out == ""
    assert [(row["event"], row["by"]) for row in table(tables.audit, "id")][-2:] == [
        ("claimed", "sam"),
        ("done", ""),
    ]


def test_what_is_rejected_is_not_done_and_its_reason_is_kept() -> None:
    key = waiting()
    rejected = here("approvals", "reject", key.upper(), "--as", "sam", "--reason", "No photo.")
    assert (rejected.code, rejected.out) == (
        0,
        "Refused. request_refund A 120 USD was not done.\n",
    )
    [row] = table(tables.actions)
    assert (row["state"], row["decided_by"], row["reason"]) == ("refused", "sam", "No photo.")
    assert "refused by sam: No photo." in here("audit").out
    assert _refunded() == []
    for decision in ("approve", "reject"):
        again = here("approvals", decision, key, "--as", "kim")
        refused(again, "decided by sam already", "Nothing was done", code=1)


@pytest.mark.parametrize("decision", ["approve", "reject"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        (lambda key: key[:5], "no such request"),
        (lambda key: "", "no such request"),
        (lambda key: "______", "no such request"),
        (lambda key: "%%%%%%%%", "no such request"),
        (lambda key: "f" * 36, "no such request"),
        (lambda key: key + "0", "no such request"),
        (lambda key: HOSTILE, "no such request: '\\x1b[31mdone\\nT-1"),
    ],
)
def test_an_id_that_names_no_request_decides_nothing(decision: str, name: Any, said: str) -> None:
    key = waiting()
    refused(here("approvals", decision, name(key), "--as", "sam"), said, "Nothing was done")
    assert [row["state"] for row in table(tables.actions)] == ["waiting"]


def test_an_id_that_begins_several_requests_decides_none() -> None:
    first, second = waiting(), waiting("130")
    overwrite(tables.actions, key=func.replace(tables.actions.c.key, second[:8], first[:8]))
    refused(here("approvals", "approve", first[:8], "--as", "sam"), "2 requests begin with")
    assert here("approvals", "approve", first, "--as", "sam").code == 0


def test_a_write_that_never_waited_is_no_request() -> None:
    [outcome] = written(refunding("A", "5"))
    refused(here("approvals", "reject", outcome.key, "--as", "sam"), "no such request")


@pytest.mark.parametrize("staff", [[], ["--as", ""], ["--as", " \x1b "], ["--as", "x" * 1001]])
@pytest.mark.parametrize(
    "command",
    [
        *("approvals approve KEY", "approvals reject KEY"),
        *("threads give-back T", "threads delete T", "customers forget C-1001"),
    ],
)
def test_whoever_decides_is_named(command: str, staff: list[str]) -> None:
    key = waiting()
    refused(here(*command.replace("KEY", key).split(), *staff), "--as")
    assert [row["state"] for row in table(tables.actions)] == ["waiting"]


def test_the_customer_does_not_decide() -> None:
    done = here("approvals", "approve", waiting(), "--as", "C-1001")
    refused(done, "never by its customer", code=1)


def test_what_lapsed_is_neither_listed_nor_approved() -> None:
    key = waiting()
    overwrite(tables.actions, until="2026-01-01")
    refused(here("approvals", "approve", key, "--as", "sam"), "lapsed", code=1)
    assert here("approvals", "list", "--json").json == []


def test_what_the_shop_refuses_is_said_and_exits_1() -> None:
    first, second = waiting(), waiting("130")
    here("approvals", "approve", first, "--as", "sam")
    done = here("approvals", "approve", second, "--as", "sam")
    assert (done.code, done.out) == (
        1,
        "request_refund A 130 USD: No more than 19.00 USD of order A is refundable. (refused)\n",
    )


def test_what_became_of_it_at_the_shop_may_be_unknown_and_is_looked_up_later() -> None:
    with serving(on_lookups(status(500), changes=status(500))) as server:
        key = waiting()
        done = here("approvals", "approve", key, "--as", "sam", **server.variables)
        assert done.code == 1
        assert done.out.endswith("until that is known. (unknown_outcome)\n")
        again = here("approvals", "approve", key, "--as", "sam", **server.variables)
        refused(again, "decided by sam already", code=1)
    assert server.changes.made == [("# a", "refunds")]


def test_two_approvals_at_once_have_one_effect() -> None:
    key = waiting()
    racing = [start("approvals", "approve", key, "--as", name) for name in ("sam", "kim")]
    done = [finish(process) for process in racing]
    assert sorted(each.code for each in done) == [0, 1], done
    assert _refunded() == [("A", "120")]


def _shell(command: str) -> Done:
    done = subprocess.run(
        ["sh", "-c", command.replace("$C", shlex.join(COMMAND))],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("to", [">&-", ">/dev/full"])
def test_what_was_approved_is_said_where_the_answer_cannot_be_written(to: str) -> None:
    done = _shell(f"$C approvals approve {waiting()} --as sam {to}")
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith("Approved. request_refund A 120 USD: done.\n")
    assert _refunded() == [("A", "120")]


@pytest.mark.parametrize(
    "command",
    [
        *("approvals approve KEY", "approvals reject KEY"),
        *("threads give-back thread-1", "customers forget C-1001"),
        pytest.param("threads delete thread-1", marks=pytest.mark.long),
    ],
)
@pytest.mark.on_file
def test_a_database_in_use_by_another_program_is_said_to_be_so(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = waiting()
    monkeypatch.setattr(tools.database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect("shop.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = here(*command.replace("KEY", key).split(), "--as", "sam")
        refused(done, "is in use by another program; nothing was written")
        assert here("approvals", "list", "--json").json[0]["key"] == key
    assert [row["state"] for row in table(tables.actions)] == ["waiting"]


def test_the_trail_says_who_did_what_oldest_first() -> None:
    key = waiting(thread="thread-2")
    here("approvals", "approve", key, "--as", "sam")
    written(cancelling("A-17", thread="thread-3"))
    lines = here("audit").out.splitlines()
    told = [" ".join(line.split()[3:]) for line in lines]
    refund, short = "request_refund A 120 USD", key[:8]
    assert told[:3] == [
        f"{refund} handed to staff by C-1001 C-1001 in thread-2 {short}",
        f"{refund} approved by sam C-1001 in thread-2 {short}",
        f"{refund} done C-1001 in thread-2 {short}",
    ]
    assert told[3].startswith("cancel_order A-17 begun by C-1001")
    rows = here("audit", "--json").json
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[1]["arguments"]["amount"] == "120"
    assert {row["by"] for row in rows} == {"C-1001", "sam", ""}


@pytest.mark.parametrize(
    ("chosen", "count"),
    [
        (["--thread", "thread-2"], 1),
        (["--order", " #a "], 1),
        (["--order", "A-17"], 2),
        (["--order", "A-17", "--thread", "thread-2"], 0),
        (["--thread", HOSTILE], 0),
        (["--thread", ""], 0),
        (["--order", "no-such-order"], 0),
    ],
)
def test_the_trail_of_a_thread_or_an_order(chosen: list[str], count: int) -> None:
    waiting(thread="thread-2")
    written(cancelling("A-17", thread="thread-3"))
    assert len(here("audit", *chosen, "--json").json) == count
    assert len(here("audit", *chosen).out.splitlines()) == count


def test_the_trail_of_what_is_no_order_id_is_refused() -> None:
    refused(here("audit", "--order", "\x07"), "order id")


def test_threads_are_listed_with_their_turns_and_with_whom_they_are() -> None:
    asked = [here("ask", "Where is order A-17?", "--json").json["thread_id"] for _ in range(2)]
    here("ask", "Hello!", "--thread", asked[0])
    handed_over(asked[1])
    rows = here("threads", "list", "--json").json
    assert all(row.pop("begun_at") for row in rows)
    assert rows == [
        {"thread_id": asked[0], "customer_id": "C-1001", "turns": 2, "with_person": False},
        {"thread_id": asked[1], "customer_id": "C-1001", "turns": 1, "with_person": True},
    ]
    assert here("threads", "list").out.count("with a person") == 1


def test_a_conversation_is_given_back_with_a_note() -> None:
    ticket = handed_over()

    async def noted(ledger: Ledger, thread: str = "thread-1") -> str | None:
        shop: Any = None
        context = Context("C-1001", shop, thread)
        return await SqlDesk(ledger.database).given_back(context, ticket)

    assert on_ledger(noted) is None
    given = here("threads", "give-back", "thread-1", "--as", "sam", "--note", "Gift arranged.")
    assert (given.code, given.out) == (0, "The agent answers in this thread again.\n")
    assert on_ledger(noted) == "Gift arranged."
    assert on_ledger(lambda ledger: noted(ledger, "thread-2")) is None
    [row] = table(tables.tickets)
    assert (row["closed_by"], row["closed_at"] is None) == ("sam", False)
    last = table(tables.audit, "id")[-1]
    assert (last["event"], last["by"], last["thread_id"]) == ("given_back", "sam", "thread-1")
    again = here("threads", "give-back", "thread-1", "--as", "kim")
    refused(again, "not with a person. Nothing was done.", code=1)
    assert len(table(tables.audit)) == 3


def test_a_conversation_given_back_without_a_note_has_an_empty_one() -> None:
    handed_over()
    here("threads", "give-back", "thread-1", "--as", "sam")
    assert [row["note"] for row in table(tables.tickets)] == [""]


def test_only_a_conversation_that_is_with_a_person_is_given_back() -> None:
    thread = here("ask", "Hello!", "--json").json["thread_id"]
    refused(here("threads", "give-back", thread, "--as", "sam"), "not with a person", code=1)
    for unknown in ("t-nobody", "", HOSTILE):
        refused(here("threads", "give-back", unknown, "--as", "sam"), "no such thread")


def test_what_people_wrote_is_shown_cleaned() -> None:
    key, thread = waiting(thread=HOSTILE), HOSTILE
    handed_over(thread)
    overwrite(tables.tickets, summary=HOSTILE)
    here("approvals", "reject", key, "--as", HOSTILE, "--reason", HOSTILE)
    here("threads", "give-back", thread, "--as", HOSTILE, "--note", HOSTILE)
    for command in ("audit", "tickets list", "threads list", "approvals list"):
        shown = here(*command.split())
        assert (shown.code, shown.err) == (0, "" if shown.out else "There is nothing to list.\n")
        assert all(c.isprintable() or c == "\n" for c in shown.out)
        assert (CLEANED in shown.out) == (command in ("audit", "tickets list"))
    [ticket] = here("tickets", "list", "--json").json
    assert [ticket[name] for name in ("thread_id", "closed_by", "note")] == [HOSTILE] * 3


def test_tickets_are_listed() -> None:
    first, second = handed_over(), handed_over("thread-2")
    here("threads", "give-back", "thread-2", "--as", "sam")
    lines = here("tickets", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == [first, second]
    assert "not delivered  open" in lines[0]
    assert "not delivered  given back by sam" in lines[1]
    assert [row["ticket"] for row in here("tickets", "list", "--json").json] == [first, second]


@pytest.mark.on_file
async def test_a_database_from_before_the_notes_is_brought_up_to_date(tmp_path: Path) -> None:
    folder, url = tmp_path / "migrations", f"sqlite:///{tmp_path}/old.db"
    shutil.copytree(AGENT_BRANCH.folder, folder, ignore=shutil.ignore_patterns("000[3-9]*", "__*"))
    await Database(url, branches=[Branch("agent", folder)]).prepare()
    with closing(sqlite3.connect(tmp_path / "old.db")) as db, db:
        db.execute("INSERT INTO tickets VALUES ('T-1', 't', 'C-1', 'Wants a gift.', 'now', '', '')")
    database = Database(url, branches=[AGENT_BRANCH])
    [ticket] = await SqlDesk(database).tickets()
    assert (ticket["ticket"], ticket["closed_by"], ticket["note"]) == ("T-1", "", "")
    await database.close()
    engine = create_engine(url)
    with engine.connect() as connection:
        options = {"version_table": AGENT_BRANCH.version_table}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, tables.metadata) == []
    engine.dispose()


def test_the_staffs_commands_import_neither_the_graph_nor_a_model() -> None:
    code = (
        "import sys\nfrom agent.cli import main\n"
        "try:\n    main(['approvals', 'list'])\n"
        "except SystemExit as ended:\n    assert ended.code == 0\n"
        "print({'agent.graph', 'langgraph.graph', 'langchain_openai', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run(
        [*COMMAND[:2], code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
