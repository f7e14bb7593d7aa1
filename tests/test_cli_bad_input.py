"""What cannot be done is said in a sentence, with its exit code, and leaves nothing behind."""

import json
import socket
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.commands import here, refused, run
from tests.demo_data import ORDERS, check_only
from tests.responses_server import nobody_listens, variables

HELLO = "Hello!"
LISTED = ("orders", "list", "--json")


@pytest.mark.parametrize(
    "question",
    ["", "  ", "\n\t\r\n", "\u3000\u00a0", "\u200b\ufeff"],
    ids=["nothing", "spaces", "lines", "wide spaces", "what nobody sees"],
)
def test_an_empty_question_is_not_asked(question: str) -> None:
    refused(here("ask", question), "empty", "Nothing was asked")


def test_a_question_of_100_000_characters_is_not_asked() -> None:
    refused(run("ask", "x" * 100_000), "100000 characters", "Nothing was asked")


def test_a_question_of_5_megabytes_is_not_asked() -> None:
    refused(here("ask", "order A-17 " * 500_000), "Nothing was asked")


def test_nothing_is_kept_of_a_question_that_was_not_asked() -> None:
    thread = here("ask", "Where is order A-18?", "--json").json["thread_id"]
    here("ask", "", "--thread", thread)
    here("ask", "x" * 100_000, "--thread", thread)
    turn = here("ask", "And order B?", "--thread", thread, "--json").json
    assert turn["turn"] == 2
    check_only(turn["message"], "B")


HALF = "\udcff"  # how Python shows the byte FF of an argument that is no text


@pytest.mark.parametrize("question", [f"Where is order A-18{HALF}?", HALF, f"A-{HALF}18"])
def test_a_question_that_is_no_text_is_not_asked(question: str) -> None:
    refused(here("ask", question))


def test_a_line_that_is_no_text_does_not_end_a_conversation() -> None:
    done = here("chat", stdin=b"Where is \xff order A-18?\nWhere is order B-21?\n")
    assert done.code == 0
    assert "Something unexpected" not in done.err
    check_only(done.out, "B-21")


@pytest.mark.parametrize(
    "question",
    [
        "Where is order A-18\0?",
        "Where is order A-18\x07\x1b]0;title\x07?",
        "\u202e\u2066Where is order \u200bA-18\u202c?",
        "\ufeffWhere is order A-18?\u2028",
        "Where is order A-18?" + "\u0301" * 2_000,
        "Where is order A-18 %s {order_id} {{0}} $(id) '; DROP TABLE orders; -- <b>?",
    ],
    ids=["nul", "terminal", "direction", "byte order", "accents", "syntax"],
)
def test_odd_characters_in_a_question_do_no_harm(question: str) -> None:
    done = here("ask", question)
    assert done.code == 0
    check_only(done.out, "A-18")
    assert not set("\0\x07\x1b\u202e\u2066\u200b\ufeff") & set(done.out + done.err)
    assert len(here(*LISTED).json) == len(ORDERS)


@pytest.mark.parametrize("customer", ["C-9", "c-1001 ", "", "C\0", "\x1b[31mC", f"C{HALF}", "'"])
def test_an_unknown_customer_is_not_served(customer: str) -> None:
    option = here("ask", HELLO, "--customer", customer)
    refused(option)
    assert "\x1b" not in option.err
    if "\0" not in customer and HALF not in customer:
        refused(here("chat", SUPPORT_CUSTOMER=customer, stdin="hi\n"), "no customer")


def test_anothers_thread_and_one_that_nobody_began_are_refused_alike() -> None:
    thread = here("ask", "Where is order A-18?", "--json").json["thread_id"]
    for command in (("ask", HELLO), ("ask", HELLO, "--json"), ("chat",)):
        anothers = here(*command, "--thread", thread, "--customer", "C-1002", stdin="hi\n")
        nobodys = here(*command, "--thread", "t-0", "--customer", "C-1002", stdin="hi\n")
        refused(anothers, "no such thread")
        assert anothers.err.replace(thread, "t-0") == nobodys.err
        assert (nobodys.code, nobodys.out) == (2, "")
    assert here("ask", HELLO, "--thread", thread, "--json").json["turn"] == 2


@pytest.mark.parametrize("thread", ["", " ", "'; --", "\x1b[31m", f"t{HALF}"])
def test_a_thread_id_that_cannot_be_one_is_refused(thread: str) -> None:
    done = here("ask", HELLO, "--thread", thread)
    refused(done)
    assert "\x1b" not in done.err


def _not_a_database(name: str) -> None:
    Path(name).write_text("I am a letter, not a database. " * 200)


@pytest.mark.parametrize("command", [("ask", HELLO), ("chat",), LISTED, ("orders", "import", "f")])
def test_a_file_that_is_no_database_is_left_as_it_is(command: tuple[str, ...]) -> None:
    Path("f").write_text(json.dumps([_order()]))
    _not_a_database("letter.db")
    before = Path("letter.db").read_bytes()
    refused(here(*command, SUPPORT_DATABASE_URL="sqlite:///letter.db"), "letter.db", "SQLite")
    assert Path("letter.db").read_bytes() == before


def test_a_damaged_database_is_named_as_such() -> None:
    here(*LISTED)
    whole = Path("support-agent.db").read_bytes()
    Path("half.db").write_bytes(whole[: len(whole) // 2])
    done = here("ask", "Where is order A-18?", SUPPORT_DATABASE_URL="sqlite:///half.db")
    refused(done, "half.db", "damaged")


def test_a_database_of_another_program_is_not_taken_over() -> None:
    with closing(sqlite3.connect("photos.db")) as photos:
        photos.execute("CREATE TABLE photos (x)")
    before = Path("photos.db").read_bytes()
    for command in (("ask", HELLO), LISTED):
        refused(here(*command, SUPPORT_DATABASE_URL="sqlite:///photos.db"), "another program's")
    assert Path("photos.db").read_bytes() == before


def _execute(statement: str) -> None:
    with closing(sqlite3.connect("support-agent.db")) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_thread_from_the_future_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Behind(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return super().now(tz) - timedelta(minutes=1)

    thread = here("ask", HELLO, "--json").json["thread_id"]
    with monkeypatch.context() as clock:
        clock.setattr("agent.cli.session.datetime", Behind)
        refused(here("ask", HELLO, "--thread", thread), thread, "clock is behind", "Nothing was")
    assert here("ask", HELLO, "--thread", thread).code == 0


def test_a_thread_whose_memory_is_damaged_is_refused() -> None:
    thread = here("ask", HELLO, "--json").json["thread_id"]
    _execute("UPDATE checkpoints SET checkpoint = x'ff'")
    refused(here("ask", HELLO, "--thread", thread), thread, "damaged", "Nothing was asked")
    assert here("ask", HELLO).code == 0


def test_results_that_cannot_be_written_are_said_before_a_case_is_played() -> None:
    Path("file").touch()
    refused(here("evals", "--out", "file/below"), "file/below cannot be written")


def test_what_keeps_turns_apart_must_be_a_file() -> None:
    Path("support-agent.db-turns").mkdir()
    refused(here("ask", HELLO), "support-agent.db-turns", "Is a directory", "Nothing was asked")


def test_a_damaged_row_is_named_and_the_others_are_listed() -> None:
    here(*LISTED)
    _execute("UPDATE orders SET total = 'abc', placed_on = 'x' WHERE order_id = 'A'")
    _execute("UPDATE orders SET status = 'lost' WHERE order_id = 'B'")
    done = here(*LISTED)
    assert done.code == 1
    assert "left out: A, B." in done.err
    assert {row["order_id"] for row in done.json} == {*ORDERS} - {"A", "B"}


def test_what_is_listed_neither_hides_nor_moves_text() -> None:
    here(*LISTED)
    _execute("UPDATE orders SET customer_id = 'C\u202e\x1b[31m9' WHERE order_id = 'A'")
    done = here("orders", "list")
    assert "C [31m9" in done.out
    assert not {"\x1b", "\u202e"} & set(done.out)


@pytest.mark.parametrize("option", ["--thread", "--customer", "--frobnicate"])
def test_what_is_repeated_of_an_argument_is_short_and_plain(option: str) -> None:
    done = here("ask", HELLO, option, "\u202e\x1b[31m" + "x" * 100_000)
    refused(done)
    assert len(done.err) < 500
    assert not {"\x1b", "\u202e"} & set(done.err)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///.", "directory"),
        ("sqlite:///file/below.db", "below.db"),
        ("sqlite:///no/such/folder.db", "folder"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://user:hunter2@127.0.0.1/shop", "sqlite:///FILE"),
        ("postgresql://user:hunter2@127.0.0.1:1/shop", "database"),
        ("postgresql://user:hunter2@127.0.0.1:abc/shop", "postgresql://"),
        ("nonsense", "sqlite:///FILE"),
        ("", "sqlite:///FILE"),
    ],
)
@pytest.mark.parametrize("command", [("ask", HELLO), LISTED], ids=["ask", "orders"])
def test_a_database_that_cannot_be_opened_is_refused(
    command: tuple[str, ...], url: str, said: str
) -> None:
    Path("file").write_text("a file, no folder")
    done = here(*command, SUPPORT_DATABASE_URL=url)
    refused(done, said)
    assert "hunter2" not in done.err
    assert [path.name for path in Path().iterdir()] == ["file"]


@pytest.mark.long
def test_a_database_that_another_program_holds_is_said_to_be_in_use() -> None:
    here(*LISTED)
    holder = sqlite3.connect("support-agent.db", isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        refused(here("ask", "Where is order A-18?"), "in use")
    finally:
        holder.close()
    check_only(here("ask", "Where is order A-18?").out, "A-18")


@pytest.mark.parametrize("key", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": "  "}])
def test_a_missing_key_is_said_before_anything_is_asked(key: dict[str, str]) -> None:
    done = here("ask", HELLO, SUPPORT_MODEL="openai:test-model", **key)
    refused(done, "OPENAI_API_KEY", "Nothing was asked")


def test_an_unreachable_endpoint_is_said_to_the_customer_and_to_the_operator() -> None:
    done = here("ask", HELLO, **variables(nobody_listens()))
    assert done.code == 1
    assert len(done.out.splitlines()) == 1
    assert "Nothing was changed" in done.out
    assert "could not be reached" in done.err


@pytest.mark.parametrize("url", ["http://[::1", "ftp://127.0.0.1/v1", "no address"])
def test_an_endpoint_that_is_no_address_is_a_wrong_setting(url: str) -> None:
    refused(here("ask", HELLO, **variables(url)), "OPENAI_BASE_URL")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SUPPORT_MODEL", "somebody:else"),
        ("SUPPORT_MODEL", "openai:"),
        ("SUPPORT_MODEL", ""),
        ("SUPPORT_TOOL_TIMEOUT", "soon"),
        ("SUPPORT_TOOL_TIMEOUT", "0"),
        ("SUPPORT_TOOL_TIMEOUT", "nan"),
        ("SUPPORT_MAX_ROUNDS", "0"),
        ("SUPPORT_MAX_ROUNDS", "1.5"),
        ("SUPPORT_MAX_CALLS", "-1"),
        ("SUPPORT_LOCAL", "perhaps"),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_started(name: str, value: str) -> None:
    refused(here("ask", HELLO, OPENAI_API_KEY="sk-test", **{name: value}), name)
    assert list(Path().iterdir()) == []


def test_all_wrong_settings_are_named_at_once() -> None:
    done = here("ask", HELLO, SUPPORT_LOCAL="perhaps", SUPPORT_MAX_CALLS="many")
    refused(done, "SUPPORT_LOCAL", "SUPPORT_MAX_CALLS")
    assert len(done.err.splitlines()) == 1


def test_a_settings_file_that_is_no_text_is_refused() -> None:
    Path(".env").write_bytes(b"SUPPORT_CUSTOMER=\xff\xfe\n")
    refused(here("ask", HELLO), ".env")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["ask"],
        ["ask", "one", "two"],
        ["ask", HELLO, "--frobnicate"],
        ["ask", HELLO, "--thread"],
        ["orders"],
        ["orders", "frobnicate"],
        ["orders", "import"],
        ["orders", "list", "--frobnicate"],
    ],
)
def test_a_command_that_does_not_exist_is_wrong_usage(arguments: list[str]) -> None:
    done = here(*arguments)
    refused(done)
    assert "Usage: support-agent" in done.err or "Error: " in done.err
    assert list(Path().iterdir()) == []


HEADER = "order_id,customer_id,status,placed_on,total,currency"
GOOD = "N-1,N-9,shipped,2026-11-14,20.50,EUR"


def _order(**fields: Any) -> dict[str, Any]:
    return {**dict(zip(HEADER.split(","), GOOD.split(","), strict=True)), **fields}


FILES: dict[str, tuple[bytes, str]] = {
    "columns.csv": (b"when,what\n1,2\n", "order_id, customer_id, status"),
    "half.csv": (f"{HEADER}\n{GOOD}\nN-2,N-9,lost,2026-13-14,x,EUR\n".encode(), "line 3, status"),
    "short.csv": (f"{HEADER}\n{GOOD}\nN-2,N-9\n".encode(), "line 3"),
    "twice.csv": (f"{HEADER}\n{GOOD}\n{GOOD.replace('20.50', '1')}\n".encode(), "line 3, total"),
    "nul.csv": (f"{HEADER}\nN\0-1{GOOD[3:]}\n".encode(), "line 2"),
    "utf16.csv": (f"{HEADER}\n{GOOD}\n".encode("utf-16"), "UTF-8"),
    "latin.csv": (f"{HEADER},note\n{GOOD},Größe\n".encode("latin-1"), "UTF-8"),
    "empty.csv": (b"", "empty"),
    "broken.json": (b'[{"order_id": "N-1"', "line 1"),
    "half.json": (json.dumps([_order(), _order(order_id="N-2", total="x")]).encode(), "orders[1]"),
    "fields.json": (b'[{"id": 1}]', "order_id"),
    "number.json": (b"42", "list of orders"),
    "huge.json": (json.dumps([_order(total="1e400")]).encode(), "total"),
    "deep.json": (b"[" * 100_000, "nested"),
    "bytes.json": (b"\xff\xfe\x00\x01", "UTF-8"),
    "owned.json": (json.dumps([_order(), _order(order_id="A-18")]).encode(), "A-18"),
}


@pytest.mark.parametrize("name", FILES)
def test_an_order_file_that_is_wrong_changes_nothing(name: str) -> None:
    content, said = FILES[name]
    before = here(*LISTED).out
    Path(name).write_bytes(content)
    refused(here("orders", "import", name), name, said, "nothing was written")
    assert here(*LISTED).out == before
    check_only(here("ask", "Where is order A-18?").out, "A-18")


@pytest.mark.parametrize("name", ["half.csv", "broken.json", "missing.json"])
def test_an_order_file_that_is_wrong_begins_no_shop(name: str) -> None:
    if name in FILES:
        Path(name).write_bytes(FILES[name][0])
    refused(here("orders", "import", name, "--empty"), name)
    assert not Path("support-agent.db").exists()
    Path("good.csv").write_text(f"{HEADER}\n{GOOD}\n")
    assert here("orders", "import", "good.csv", "--empty").code == 0
    assert [row["order_id"] for row in here(*LISTED).json] == ["N-1"]


def test_an_order_file_that_is_missing_or_no_file_is_named() -> None:
    Path("folder").mkdir()
    refused(here("orders", "import", "missing.json"), "missing.json", "no such file")
    refused(here("orders", "import", "folder"), "folder", "directory")
    refused(here("orders", "import", "x" * 5_000), "cannot be read")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door.json")
        refused(here("orders", "import", "door.json"), "door.json")


def test_all_bad_rows_are_named_in_one_go() -> None:
    rows = [f"N-{number},N-9,lost,2026-11-14,1,EUR" for number in range(5)]
    Path("bad.csv").write_text("\n".join([HEADER, *rows]))
    done = run("orders", "import", "bad.csv")
    refused(done, *(f"line {line}," for line in range(2, 7)))


SOCKS = {"ALL_PROXY": "socks5://127.0.0.1:9"}
UNKNOWN = {"all_proxy": "socks://127.0.0.1:9"}
NO_FILE = {"SSL_CERT_FILE": "/nonexistent.pem"}


@pytest.mark.parametrize("variables", [SOCKS, UNKNOWN, NO_FILE])
def test_the_network_of_this_machine_is_no_matter_offline(variables: dict[str, str]) -> None:
    check_only(here("ask", "Where is order A-18?", **variables).out, "A-18")


@pytest.mark.parametrize("variables", [SOCKS, UNKNOWN, NO_FILE])
@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_network_that_cannot_be_used_is_named(vendor: str, variables: dict[str, str]) -> None:
    key = {f"{vendor.upper()}_API_KEY": "sk-test"}
    done = here("ask", HELLO, SUPPORT_MODEL=f"{vendor}:test-model", **key, **variables)
    refused(done, *variables, "cannot be used", "Nothing was asked")
    assert "127.0.0.1" not in done.err, "it may hold a password"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_ORG_ID"])
def test_what_fits_no_header_is_a_wrong_setting(name: str) -> None:
    refused(here("ask", HELLO, **{name: "cl\u00e9"}), name, "ASCII")


def test_chat_completions_keep_no_conversation() -> None:
    both = {"SUPPORT_OPENAI_API": "chat", "SUPPORT_STORE_RESPONSES": "true"}
    refused(here("ask", HELLO, **both), *both)
