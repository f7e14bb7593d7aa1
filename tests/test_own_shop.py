"""Another shop behind the agent: settings or `tools/` change, and the graph's tests still hold.

Those tests are imported. Here they run once more, on a shop that two lines of `.env` name, beside a
database that has no order.
"""
# ruff: noqa: F401

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.settings import Settings, load
from agent.store import open_database
from tests.commands import COMMAND, environment, here, refused
from tests.demo_data import check_only
from tests.responses_server import nobody_listens
from tests.shop_server import TOKEN, ShopServer, serving, status
from tests.test_order_of_completion import (
    test_a_hundred_calls_share_tasks_and_keep_their_results,
    test_equal_calls_are_each_answered_and_spoken_of_once,
    test_every_order_of_completion,
    test_failing_calls_keep_their_errors_and_leave_the_others_alone,
    test_unknown_and_foreign_orders_keep_their_errors,
)
from tests.test_turn import (
    test_a_failure_tried_again_with_success_leaves_the_good_card_alone,
    test_a_foreign_order_cannot_be_told_from_one_that_does_not_exist,
    test_each_of_two_orders_is_answered_with_its_own_data,
    test_ids_that_start_again_in_each_round_keep_their_results_apart,
    test_our_tools_find_the_shop_of_the_settings_when_only_tools_are_given,
    test_the_status_words_of_a_card_are_the_shops,
)
from tools.database import Database
from tools.shop import open_shop
from tools.shop.http import HttpShop
from tools.shop.protocol import Shop
from tools.shop.sql import SqlShop

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "your-own-shop.md").read_text(encoding="utf-8")
BOTH = "When do orders A and B arrive?"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


OWN_SHOP, OPEN_SHOP, LOOK = _blocks("python")
COMMANDS = [shlex.split(line) for block in _blocks("sh") for line in block.splitlines()]


@pytest.fixture(autouse=True)
def server(tmp_path: Path, _no_settings_of_this_machine: None) -> Iterator[ShopServer]:
    """The shop's API, chosen as a deployment chooses it."""
    with serving() as running:
        lines = [f"{name}={value}\n" for name, value in running.variables.items()]
        (tmp_path / ".env").write_text("".join(lines))
        yield running


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Instead of the demo shop's: what is answered comes from the API, or from nowhere."""
    opened = open_database(f"sqlite:///{tmp_path}/empty.db")
    await opened.prepare(demo=False)
    yield opened
    await opened.close()


async def test_the_setting_chooses_the_shop(database: Database, server: ShopServer) -> None:
    settings = load()
    assert isinstance(open_shop(database, None, settings.shop_token), SqlShop)
    chosen = open_shop(database, settings.shop_url, settings.shop_token)
    assert isinstance(chosen, HttpShop)
    assert await chosen.order("A") is not None
    assert server.requests == ["/api/orders?number=A"]


@pytest.mark.parametrize("value", ["two words", "tøken", "broken\nline", "a\x7fb"])
def test_a_token_that_fits_no_header_is_refused_without_being_said(value: str) -> None:
    with pytest.raises(Exception, match="one word of ASCII") as raised:
        Settings.model_validate({"shop_token": value})
    assert "SUPPORT_SHOP_TOKEN" in here("ask", BOTH, SUPPORT_SHOP_TOKEN="two words").err
    refused(here("ask", BOTH, SUPPORT_SHOP_TOKEN="two words"), "SUPPORT_SHOP_TOKEN")
    assert "two words" not in here("ask", BOTH, SUPPORT_SHOP_TOKEN="two words").err
    assert raised.type.__name__ == "ValidationError"


def test_an_address_that_is_none_is_refused() -> None:
    refused(here("ask", BOTH, SUPPORT_SHOP_URL="shop.example"), "SUPPORT_SHOP_URL")


def test_blank_settings_are_none() -> None:
    settings = Settings(shop_url=" ", shop_token="")  # type: ignore[arg-type]
    assert (settings.shop_url, settings.shop_token) == (None, None)


def test_the_command_asks_the_shop_and_closes_it() -> None:
    with serving(hangs_up=False) as keeping:
        done = here("ask", BOTH, **keeping.variables)
    assert done.code == 0
    check_only(done.out, "A", "B")
    assert len(keeping.requests) == 5
    assert keeping.connections < 5


def test_a_conversation_asks_one_client(server: ShopServer) -> None:
    with serving(hangs_up=False) as keeping:
        done = here("chat", stdin="Where is A?\nWhere is B?\nAnd A-18?\n", **keeping.variables)
    assert done.code == 0
    check_only(done.out, "A", "B", "A-18")
    assert keeping.connections == 1


def test_a_customer_that_the_shop_does_not_have_is_refused() -> None:
    refused(here("ask", BOTH, "--customer", "C-9999"), "no customer 'C-9999'", "Nothing was asked")


def test_a_shop_that_cannot_be_asked_is_said_in_a_sentence() -> None:
    away = here("ask", BOTH, SUPPORT_SHOP_URL=nobody_listens())
    refused(away, "could not be reached", "Nothing was asked", "SUPPORT_SHOP_URL")
    with serving(status(401)) as closed:
        done = here("ask", BOTH, **closed.variables)
    refused(done, "did not let this agent in", "SUPPORT_SHOP_TOKEN")
    assert TOKEN not in done.err


@pytest.mark.parametrize("command", [("list",), ("import", str(ROOT / "tests/data/orders.csv"))])
def test_the_orders_of_another_shop_are_not_looked_for_in_the_database(
    command: tuple[str, ...],
) -> None:
    refused(here("orders", *command), "SUPPORT_SHOP_URL")


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[0] != "make"], ids=" ".join)
def test_each_command_of_the_guide_runs(command: list[str]) -> None:
    installed = {".venv/bin/python": [sys.executable], ".venv/bin/support-agent": COMMAND}
    words = [part for word in command for part in installed.get(word, [word])]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    check_only(done.stdout, "A", "B")


def test_the_other_commands_of_the_guide_are_targets() -> None:
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    others = [command for command in COMMANDS if command[0] == "make"]
    assert {target for _, target, *_ in others} == {"test"} <= set(targets)
    assert all(
        (ROOT / file).is_file() for _, _, arguments in others for file in arguments[5:].split()
    )


def test_what_the_guide_names_exists() -> None:
    named = re.findall(r"`((?:tools|tests|evals)/[\w./-]*)`", GUIDE)
    yours = {"evals/cases/NAME/"}
    assert [path for path in named if path not in yours and not (ROOT / path).exists()] == []
    code = "".join(
        (ROOT / "tools/shop" / name).read_text() for name in ("http.py", "http_answers.py")
    )
    for name in ("ATTEMPTS = 3", "LONGEST_PAUSE = 3", "MOST_PAGES = 100", "max_connections=32"):
        assert name in code
    for name in ("STATUSES", "NumberedOrder", "internal_id", "LIMITS"):
        assert name in code
        assert name in GUIDE


async def test_the_guide_says_truly_whose_order_it_is(server: ShopServer) -> None:
    written: dict[str, Any] = {}
    exec(LOOK, written)
    look: Callable[[Shop, str], Coroutine[Any, Any, str]] = written["look"]
    shop = HttpShop(server.url, SecretStr(TOKEN))
    assert await look(shop, "A") == "A is in_transit."
    foreign, unknown = await look(shop, "00123"), await look(shop, "99999")
    assert foreign.replace("00123", "ID") == unknown.replace("99999", "ID")


CENTRAL = "two_orders or foreign or failing or same"


def test_a_clone_with_the_guides_shop_passes_the_graphs_tests(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.db*", "notebooks")
    shutil.copytree(ROOT, clone, ignore=left_out)
    for block in (OWN_SHOP, OPEN_SHOP):
        path = block.partition("\n")[0].removeprefix("# ")
        assert path.startswith("tools/")
        _write(clone / path, block)
    which = "from tools.shop import open_shop; print(type(open_shop(None, None, None)).__name__)"
    chosen = subprocess.run([sys.executable, "-c", which], **_in(clone), timeout=60)
    assert chosen.stdout == "OwnShop\n"
    asked = subprocess.run([*COMMAND, "ask", BOTH], **_in(clone), timeout=60)
    check_only(asked.stdout, "A", "B")
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-k", CENTRAL,
         "tests/test_turn.py", "tests/test_order_of_completion.py"],
        **_in(clone), timeout=120,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    assert int(re.findall(r"(\d+) passed", tested.stdout)[0]) > 20


def _write(file: Path, block: str) -> None:
    """A new file, or another `open_shop` in the one that is there."""
    if not file.exists():
        file.write_text(block)
        return
    before = file.read_text()
    function = re.compile(r"^def open_shop.*?(?=^\S)", re.MULTILINE | re.DOTALL)
    after = function.sub(block.partition("\n")[2] + "\n\n", before, count=1)
    assert after != before
    file.write_text(after)


def _in(clone: Path) -> dict[str, Any]:
    env = {**environment(), "PYTHONPATH": str(clone)}
    return {"cwd": clone, "env": env, "capture_output": True, "text": True}
