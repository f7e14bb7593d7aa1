"""`history check`, `repair` and `convert` on files of all sorts."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update

from agent import tables
from agent.history import repair
from agent.history.kept import results_of
from tests.commands import COMMAND, environment, here, refused
from tests.histories import WRITE, Asks, Call, Event, Raw, Result, Says, User, compact, request
from tests.ledgers import cancelling, ledger_of, moving
from tools.database import Database

ASKED = Asks((Call("call_a", '{"order_id":"A-18"}'), Call("call_b", '{"order_id":"B-21"}')))
BROKEN = WRITE["chat"]([User(), ASKED, Result("call_a", {"stock": 31}), User("And?")])


def written(content: Any, name: str = "history.json") -> str:
    """A file in the test's folder: bytes as they are, else JSON."""
    Path(name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return name


def lines(*each: Raw) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in each)


def test_check_says_what_is_wrong_where_and_what_to_do() -> None:
    done = here("history", "check", written({"messages": BROKEN}), "--json")
    assert done.code == 1
    [problem] = done.json["problems"]
    assert {**done.json, "problems": 1} == {
        "protocol": "chat",
        "messages": 4,
        "valid": False,
        "problems": 1,
    }
    assert problem.pop("message").startswith("Call call_b has no result: put its real result")
    assert problem == {
        "kind": "missing_result",
        "index": 1,
        "path": "messages[1].tool_calls[1]",
        "call_id": "call_b",
        "vendors": "",
    }
    plain = here("history", "check", "history.json")
    assert plain.code == 1
    assert plain.out.splitlines()[0].startswith("messages[1].tool_calls[1]: missing_result: Call")
    assert plain.out.splitlines()[1] == "1 problems: 4 chat messages"


@pytest.mark.parametrize("name", WRITE)
def test_a_valid_history_of_each_protocol_is_valid(name: str) -> None:
    listed = WRITE[name]([User(), Says(), User()])
    for document in (request(name, listed), listed, lines(*listed)):
        assert here("history", "check", written(document)).out.startswith("valid: ")


@pytest.mark.parametrize(
    "content",
    [
        b"", b" \n", b"\xff\xfe[\x00", "[]".encode("utf-16"), b"\xe9", b"{", b'[{"role": "user"',
        b"{}", b"[]", b"7", b"null", b"<p>", b'{"messages": []}', b'{"a": 1, "a": 2}',
        b'[{"role": "user", "content": NaN}]', b'{"role": "user", "content": "?"}\n{"role":',
        b'{"a": 1}\n{"b": 2}\n', b"order_id,status\nA-17,shipped\n", b'{"type": "Feature"}',
        b"[" * 100_000, b'[{"role": "user", "content": 1e999}]', b'[1e99999999999999999999]',
    ],
)  # fmt: skip
def test_a_file_that_is_no_history_gets_one_sentence(content: bytes) -> None:
    file = written(content)
    for arguments in (["check", file], ["repair", file], ["convert", file, "--to", "chat"]):
        done = here("history", *arguments)
        refused(done, file, "Nothing was done.")
        assert len(done.err.splitlines()) == 1


def test_a_file_that_is_not_there_and_a_folder_are_unreadable_input(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        refused(here("history", "check", str(path)), "Nothing was done.")


def test_repair_puts_the_given_result_in_its_place_and_says_so() -> None:
    results = written({"call_b": {"stock": 42}, "call_x": 1}, "results.json")
    file = written({"model": "m", "messages": BROKEN})
    done = here("history", "repair", file, "--results", results)
    assert done.code == 0
    whole = [*BROKEN[:3], *WRITE["chat"]([Result("call_b", {"stock": 42})]), BROKEN[3]]
    assert done.json == {"model": "m", "messages": whole}
    assert "The result call_b was put behind its response." in done.err
    assert "call_x" in done.err
    assert here("history", "check", written(done.out.encode(), "mended.json")).code == 0
    again = here("history", "repair", "mended.json", "--results", results)
    assert (again.code, again.out) == (0, done.out)


def test_repair_names_what_nobody_knows_and_leaves_it() -> None:
    content = json.dumps(BROKEN, indent=3).encode()
    done = here("history", "repair", written(content))
    assert done.code == 1
    assert done.out.encode() == content
    assert done.err.startswith("left: [1].tool_calls[1]: Call call_b has no result")


def test_a_call_that_never_ran_is_said_not_to_have_run() -> None:
    file = written(BROKEN)
    done = here("history", "repair", file, "--not-executed", "call_b")
    assert done.code == 0
    assert json.loads(done.json[3]["content"])["error"]["kind"] == "not_executed"
    results = written({"call_b": 1}, "results.json")
    both = here("history", "repair", file, "--not-executed", "call_b", "--results", results)
    refused(both, "call_b")


def test_diff_shows_what_would_be_done_and_writes_nothing(tmp_path: Path) -> None:
    results = written({"call_b": {"stock": 42}}, "results.json")
    arguments = ("--results", results, "--diff", "-o", "out.json")
    done = here("history", "repair", written(BROKEN), *arguments)
    assert done.code == 0
    changed = [line for line in done.out.splitlines()[2:] if line[0] in "+-"]
    assert '+    "content": "{\\"stock\\":42}"' in changed
    assert len(changed) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.json", "results.json"]


def test_lines_stay_lines_and_a_file_can_be_repaired_in_its_place() -> None:
    told = {**BROKEN[0], "content": "Größe? \u2028 \U0001f642"}
    file = written(b"\xef\xbb\xbf" + lines(told, *BROKEN[1:]), "history.jsonl")
    results = written({"call_b": None}, "results.json")
    assert here("history", "repair", file, "--results", results, "-o", file).code == 0
    kept = [json.loads(line) for line in Path(file).read_text().split("\n") if line]
    assert [kept[0], *kept[1:3], kept[4]] == [told, *BROKEN[1:]]
    assert kept[3]["content"] == "null"


@pytest.mark.parametrize("apart", [b",", b" ,\r\n  "])
def test_a_message_that_stays_keeps_its_bytes(apart: bytes) -> None:
    own = [
        b'{"role":"user", "content":"\\u00e9 ]}","n":1.50, "m":[{}]}',
        compact(BROKEN[1]).encode(),
    ]
    result = b'{"role": "tool", "tool_call_id": "call_a", "content": "[]"}'
    results = written({"call_a": [], "call_b": []}, "results.json")
    begins, ends = b'{"x":{"messages":[{}]},\n"messages" :[ ', b' ],"tools":[{"messages":[{}]}]}\n'
    file = written(begins + apart.join(own) + ends)
    assert here("history", "repair", file, "--results", results, "-o", "out.json").code == 0
    whole = apart.join([*own, result, result.replace(b"_a", b"_b")])
    assert Path("out.json").read_bytes() == begins + whole + ends
    file = written(b"\r\n".join(own))
    assert here("history", "repair", file, "--results", results, "-o", file).code == 0
    assert Path(file).read_bytes() == b"\r\n".join([*own, result, result.replace(b"_a", b"_b")])


def test_a_file_is_written_in_its_place_with_its_mode_and_nothing_else_is_replaced() -> None:
    results = written({"call_b": 1}, "results.json")
    Path(written(BROKEN)).chmod(0o640)
    Path("link.json").symlink_to("history.json")
    os.mkfifo("pipe.json")
    arguments = ("history", "repair", "history.json", "--results", results, "-o")
    for out in ("pipe.json", "results.json/out.json", ""):
        refused(here(*arguments, out), "Nothing was done.")
    assert here(*arguments, "link.json").code == 0
    assert Path("link.json").is_symlink()
    assert stat.S_ISFIFO(Path("pipe.json").stat().st_mode)
    assert Path("history.json").stat().st_mode & 0o777 == 0o640
    assert here("history", "check", "history.json").code == 0


def test_results_that_no_call_needs_are_named() -> None:
    results = written({"call_a": 1, "call_\u001b[31mx": 2}, "results.json")
    done = here("history", "repair", written(BROKEN), "--results", results,
                "--not-executed", "call_z")  # fmt: skip
    assert done.code == 1
    told = "Not used, since no call needs it: call_\N{REPLACEMENT CHARACTER}[31mx, call_a, call_z"
    assert told in done.err.splitlines()


def test_half_of_a_character_stays_as_it_was() -> None:
    file = written(b'[{"role": "user", "content": "\\ud83d"}, {"role": "tool", "content": "", '
                   b'"tool_call_id": "x"}]')  # fmt: skip
    assert here("history", "repair", file, "-o", "out.json").code == 0
    assert json.loads(Path("out.json").read_text()) == [{"role": "user", "content": "\ud83d"}]


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff"])
def test_results_that_cannot_be_read_are_refused(content: bytes) -> None:
    results = written(content, "results.json")
    refused(here("history", "repair", written(BROKEN), "--results", results), "results.json")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    file = written(BROKEN)
    refused(here("history", "repair", file, "-o", "none/out.json"), "none/out.json")
    refused(here("history", "convert", file, "--to", "messages", "-o", str(tmp_path)), "written")
    assert [path.name for path in tmp_path.iterdir()] == ["history.json"]


def test_convert_writes_the_other_form_and_names_what_it_cannot_hold() -> None:
    items = WRITE["responses"]([User(), ASKED, Result("call_a", 1), Result("call_b", 2)])
    done = here("history", "convert", written(items), "--to", "messages")
    assert done.code == 0
    assert done.json == WRITE["messages"]([User(), ASKED, Result("call_a", 1), Result("call_b", 2)])
    assert done.err == "left out: `id` ([1] and 1 more)\n"
    refused(here("history", "convert", "history.json", "--to", "soap"))


@pytest.mark.parametrize("to", ["chat", "messages"])
def test_convert_says_of_a_broken_history_that_it_still_is(to: str) -> None:
    events: list[Event] = [
        User(),
        Asks((Call("call_a"), Call("call_b"))),
        Result("call_a"),
        Result("call_x"),
    ]
    done = here("history", "convert", written(WRITE["chat"](events)), "--to", to)
    assert done.json == WRITE[to](events)
    assert done.code == 1
    assert done.err == "1 problems are in it: mismatched_id. `history check` says more.\n"


def test_ten_thousand_messages_are_checked_with_progress() -> None:
    events = [
        event
        for n in range(2_500)
        for event in (User("?" * 1500), Asks((Call(f"c{n}"),)), Result(f"c{n}", "x" * 300), Says())
    ]
    file = written(WRITE["chat"](events))
    assert Path(file).stat().st_size > 5_000_000
    done = here("history", "check", file)
    assert done.out == "valid: 10000 chat messages\n"
    assert done.err.splitlines()[-1] == "10000 of 10000 messages checked"
    assert len(done.err.splitlines()) == 10


def test_check_starts_without_the_agent() -> None:
    heavy = ("langgraph", "langchain_core", "langchain_openai", "langsmith", "openai", "pydantic",
             "sqlalchemy", "httpx2", "babel")  # fmt: skip
    code = COMMAND[2].replace("main()", f"main(['history', 'check', {written(BROKEN)!r}])")
    ends = f"\nexcept SystemExit: print([n for n in {heavy} if n in __import__('sys').modules])"
    imports, call = code.split("; ")
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}\ntry: {call}{ends}"],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_thread_knows_the_results_of_its_own_calls() -> None:
    asked = here("ask", "Where are order A-18 and order B-21?", "--json")
    told = asked.json["calls"]
    calls = tuple(Call(c["call_id"], compact(c["arguments"]), c["tool"]) for c in told)
    others = (Call(calls[0].id, '{"order_id":"B-99"}', calls[0].name), Call("call_x"))
    file = written(WRITE["responses"]([User(), Asks(calls), User(), Asks(others), User()]))
    done = here("history", "repair", file, "--thread", asked.json["thread_id"])
    assert done.code == 1
    outputs = [item for item in done.json if item["type"] == "function_call_output"]
    assert [json.loads(item["output"]) for item in outputs] == [call["output"] for call in told]
    assert [item["call_id"] for item in outputs] == [call["call_id"] for call in told]
    refused(here("history", "repair", file, "--thread", "t-nobody"), "no such thread")


async def test_the_ledger_knows_the_writes_of_a_turn_that_broke_off(
    database: Database, database_url: str
) -> None:
    async def known(call: Call) -> Raw:
        """What the repaired history says of a call, {} where it is left."""
        kept = await results_of(database_url, "thread-1")
        told = WRITE["chat"]([User(), Asks((call,)), User()])
        document = repair(told, kept=kept).document
        said: Raw = {} if document is told else json.loads(document[2]["content"])
        return said

    ledger = ledger_of(database)
    async with database.begin() as db:
        begun = {"thread_id": "thread-1", "customer_id": "demo", "begun_at": "2026-11-30"}
        await db.execute(insert(tables.threads).values(begun))
    await ledger.write_once(cancelling("A-17", call="1/1/c1"))
    await ledger.write_once(moving("A-18", "9 Mill Lane, Salem, OR 97301, US", call="1/1/c2"))
    arguments = '{"order_id":"A-17","reason":"no longer needed"}'
    mine = Call("c1", arguments, "cancel_order")
    said = await known(mine)
    assert said["data"] == {"state": "done", "repeated": False, "order_id": "A-17"}
    assert await known(Call("c1", "{}", "cancel_order")) == {}
    assert await known(Call("c9", arguments, "cancel_order")) == {}
    assert await known(Call("c1", arguments, "get_order")) == {}
    async with database.begin() as db:
        await db.execute(update(tables.actions).values(state="unknown", receipt=None))
    assert await known(mine) == {}
