"""The command as people and programs use it: processes, pipes, JSON."""

import json
import re
import sqlite3
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.commands import environment, here, refused, run, thread_of
from tests.demo_data import ORDERS, check_only

TWO = "Where are order A-18 and order B-21?"

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
FROM_ONE = {"type": "integer", "minimum": 1}


def _object(**properties: Any) -> dict[str, Any]:
    """Exactly these keys."""
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


ERROR = _object(kind=TEXT, message=TEXT)
CARD = _object(
    call_id=TEXT,
    tool=TEXT,
    subject=TEXT,
    text={"type": "string", "minLength": 1},
    values={"type": "object"},
    source={"enum": ["model", "default"]},
)
OUTPUT = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"enum": ["ok", "error"]}, "order_id": TEXT, "error": ERROR},
    "oneOf": [{"required": ["data"]}, {"required": ["error"]}],
    "additionalProperties": {},
}
CALL = _object(
    call_id={"type": "string", "pattern": "^call_"},
    item_id={"type": "string", "pattern": "^fc_"},
    tool=TEXT,
    subject=TEXT,
    arguments={"type": ["object", "string"]},
    round=FROM_ONE,
    response_id={"type": "string", "pattern": "^resp_"},
    status={"enum": ["ok", "error", "pending"]},
    output=_or_null(OUTPUT),
    error=_or_null(ERROR),
    started_at=TEXT,
    finished_at=_or_null(TEXT),
)
TURN = _object(
    thread_id={"type": "string", "minLength": 1},
    turn=FROM_ONE,
    status={"enum": ["answered", "awaiting_confirmation", "with_person", "failed"]},
    message={"type": "string", "minLength": 1},
    locale=TEXT,
    cards={"type": "array", "items": CARD},
    calls={"type": "array", "items": CALL},
    confirmations={"type": "array", "maxItems": 0},
    rounds=FROM_ONE,
    usage=_object(
        input_tokens=COUNT, output_tokens=COUNT, cached_tokens=COUNT, reasoning_tokens=COUNT
    ),
    cost_usd=_or_null({"type": "string", "pattern": r"^\d+\.\d+$"}),
    trace_id=_or_null(TEXT),
    error=_or_null(ERROR),
)


def check_turn(turn: Any) -> None:
    """Asserts that this is a turn as programs rely on it."""
    problems = [
        f"{problem.json_path}: {problem.message}"
        for problem in Draft202012Validator(TURN).iter_errors(turn)
    ]
    assert problems == []
    calls = {call["call_id"]: call for call in turn["calls"]}
    for call in turn["calls"]:
        began, ended = (datetime.fromisoformat(call[at]) for at in ("started_at", "finished_at"))
        assert began.tzinfo is not None
        assert ended.tzinfo is not None
        assert began <= ended
        assert call["output"]["status"] == call["status"]
        assert (call["error"] is None) == (call["status"] == "ok")
        assert call["output"].get("order_id", "") == call["subject"]
    for card in turn["cards"]:
        call = calls[card["call_id"]]
        assert (card["tool"], card["subject"]) == (call["tool"], call["subject"])
        assert card["values"].items() <= call["output"].get("data", {}).items()
        assert card["text"] in turn["message"]


def test_a_first_question_and_a_follow_up_in_two_processes() -> None:
    first = run("ask", TWO)
    assert first.code == 0
    check_only(first.out, "A-18", "B-21")
    assert not {"\x1b", "╭", "│"} & set(first.out), "it is decorated although no terminal reads it"
    assert Path("support-agent.db").is_file()
    thread = thread_of(first)
    for order_id in ("A-18", "B-21"):
        assert first.err.count(f"▸ get_delivery {order_id} ") == 1
        assert first.err.count(f"✓ get_delivery {order_id} ") == 1
    second = run("ask", "and the second one?", "--thread", thread, "--json")
    assert second.code == 0
    check_turn(second.json)
    assert (second.json["thread_id"], second.json["turn"]) == (thread, 2)
    assert [card["subject"] for card in second.json["cards"]] == ["B-21"]
    check_only(second.json["message"], "B-21")


def test_json_holds_exactly_what_programs_rely_on() -> None:
    question = "Where are orders A-18, ZZ-404 and B-21, and what is in order A-17?"
    done = here("ask", question, "--json")
    assert done.code == 0
    turn = done.json
    check_turn(turn)
    by_subject = {call["subject"]: call for call in turn["calls"]}
    assert list(by_subject) == ["A-18", "ZZ-404", "B-21", "A-17"]
    assert by_subject["ZZ-404"]["error"]["kind"] == "not_found"
    assert (turn["status"], turn["turn"], turn["error"]) == ("answered", 1, None)
    assert {card["subject"] for card in turn["cards"]} == set(by_subject)
    assert turn["usage"]["input_tokens"] > 0
    data = by_subject["A-17"]["output"]["data"]
    assert data["total"] == ORDERS["A-17"]["total"]
    assert (turn["cost_usd"], turn["trace_id"], turn["confirmations"]) == (None, None, [])


def test_json_of_a_turn_without_calls_has_the_same_form() -> None:
    turn = here("ask", "Hello!", "--json").json
    check_turn(turn)
    assert (turn["calls"], turn["cards"], turn["rounds"]) == ([], [], 1)


def test_stdout_holds_the_answer_alone_and_stderr_the_rest() -> None:
    done = here("ask", "Where is order A-18?", "--json")
    assert done.out.lstrip().startswith("{")
    assert done.out.rstrip().endswith("}")
    assert "get_delivery A-18" in done.err


def test_a_conversation_through_a_pipe() -> None:
    lines = ["Where is order A-18?", "x" * 5_000_000, "and order B-21?", "", "and order B?"]
    done = run("chat", stdin="\n".join(lines))
    assert done.code == 0
    check_only(done.out, "A-18", "B-21")
    assert done.out.index("A-18") < done.out.index("B-21")
    assert "The question has 5000000 characters" in done.err
    assert len(done.err) < 5_000
    thread = thread_of(done)
    assert here("ask", "and the first one?", "--thread", thread, "--json").json["turn"] == 3


def test_a_conversation_goes_on_with_its_thread_and_ends_with_the_input() -> None:
    thread = here("ask", TWO, "--json").json["thread_id"]
    done = here("chat", "--thread", thread, stdin="and the second one?")
    assert done.code == 0
    assert [line for line in done.out.splitlines() if line != line.strip(" ")] == []
    check_only(done.out, "B-21")
    assert here("chat").code == 0


def test_the_customer_is_the_one_that_the_option_or_the_environment_names() -> None:
    option = here("ask", "Where is order D-301?", "--customer", "C-1002")
    variable = here("ask", "Where is order D-301?", SUPPORT_CUSTOMER="C-1002")
    nobody_said = here("ask", "Where is order D-301?")
    check_only(option.out, "D-301")
    assert variable.out == option.out
    check_only(nobody_said.out)
    assert nobody_said.code == 0


def test_settings_are_read_from_a_file_beside_the_database() -> None:
    Path(".env").write_text("SUPPORT_CUSTOMER=C-1002\nSUPPORT_DATABASE_URL=sqlite:///other.db\n")
    check_only(here("ask", "Where is order D-301?").out, "D-301")
    assert Path("other.db").is_file()
    assert not Path("support-agent.db").exists()


def test_everybodys_orders_are_listed_for_people_and_for_programs() -> None:
    for_people, for_programs = run("orders", "list"), run("orders", "list", "--json")
    rows = for_programs.json
    assert for_people.code == for_programs.code == 0
    assert {row["order_id"] for row in rows} == set(ORDERS)
    assert len(for_people.out.splitlines()) == len(rows) == len(ORDERS)
    for row in rows:
        order = ORDERS[row["order_id"]]
        named = ("customer_id", "status", "total", "currency")
        assert {name: row[name] for name in named} == {name: order[name] for name in named}
    assert any({"A-18", "C-1001", "147.20"} <= set(r.split()) for r in for_people.out.splitlines())


HEADER = "order_id,customer_id,status,placed_on,total,currency"


def test_a_shops_own_orders_are_loaded_and_answered_about() -> None:
    Path("mine.csv").write_text(
        f"{HEADER},carrier,tracking_number,promised_date,days,colour\n"
        "N-1,N-9,shipped,2026-11-14,20.50,EUR,Post,TRACK-1,2026-11-20,3,red\n"
    )
    Path("more.json").write_text(
        json.dumps([dict(zip(HEADER.split(","), _row("N-2"), strict=True))])
    )
    loaded = run("orders", "import", "mine.csv", "--empty")
    assert loaded.code == 0
    assert "colour" in loaded.out + loaded.err, "an unknown column is reported"
    assert here("orders", "import", "more.json").code == 0
    assert [row["order_id"] for row in here("orders", "list", "--json").json] == ["N-1", "N-2"]
    answer = here("ask", "Where is order N-1?", "--customer", "N-9")
    assert "TRACK-1" in answer.out
    assert "November 20, 2026" in answer.out


def _row(order_id: str) -> list[str]:
    return [order_id, "N-9", "pending", "2026-11-15", "3.00", "EUR"]


def test_what_was_loaded_is_said_in_words() -> None:
    Path("mine.csv").write_text(f"{HEADER}\n{','.join(_row('N-2'))}\n")
    done = here("orders", "import", "mine.csv")
    assert done.code == 0
    assert "1 order" in done.out
    assert "ImportReport" not in done.out


def test_without_empty_a_shops_orders_come_beside_the_demo_shops() -> None:
    Path("mine.csv").write_text(f"{HEADER}\n{','.join(_row('N-2'))}\n")
    assert here("orders", "import", "mine.csv").code == 0
    listed = {row["order_id"] for row in here("orders", "list", "--json").json}
    assert listed == {*ORDERS, "N-2"}


def test_an_empty_beginning_is_refused_where_orders_are() -> None:
    before = here("orders", "list", "--json").out
    Path("mine.csv").write_text(f"{HEADER}\n{','.join(_row('N-2'))}\n")
    refused(here("orders", "import", "mine.csv", "--empty"), "has orders already", code=1)
    assert here("orders", "list", "--json").out == before


def test_help_and_the_operators_commands_load_neither_the_graph_nor_a_models_client() -> None:
    Path("mine.csv").write_text(f"{HEADER}\n{','.join(_row('N-2'))}\n")
    commands = [["--help"], ["ask", "--help"], ["orders", "list"], ["orders", "import", "mine.csv"]]
    script = f"""
import contextlib, sys
from agent.cli import main
for arguments in {commands!r}:
    with contextlib.suppress(SystemExit):
        main(arguments)
print("loaded:", *sorted(name for name in sys.modules if "." not in name))
"""
    asked = [sys.executable, "-c", script]
    done = subprocess.run(asked, env=environment(), capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rsplit("loaded:", 1)[1].split())
    assert "sqlalchemy" in loaded
    heavy = {"langgraph", "langchain_core", "langchain_openai", "langsmith", "openai", "httpx2"}
    assert loaded & heavy == set()


def test_a_proxy_of_this_machine_makes_no_noise_offline() -> None:
    done = run("ask", "Hello!", HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="localhost")
    assert done.code == 0
    assert done.out.strip()
    assert re.fullmatch(r"thread \S+\n", done.err), done.err


def test_the_conversation_lies_in_the_database_of_the_shop() -> None:
    thread = here("ask", TWO, "--json").json["thread_id"]
    connection = sqlite3.connect("support-agent.db")
    try:
        kept = connection.execute("SELECT count(*) FROM checkpoints WHERE thread_id = ?", [thread])
        assert kept.fetchone()[0] > 0
    finally:
        connection.close()
