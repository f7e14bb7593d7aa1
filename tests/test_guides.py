"""The guides tell the truth: what they say to write works as it stands there.

`docs/your-own-shop.md` is tested in `tests/test_own_shop.py`.
"""

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from agent.outbox import Outbox
from tests import dev_server
from tests.commands import COMMAND, ROOT, environment
from tests.ledgers import escalating, ledger_of
from tests.loopback import LoopbackServer, running
from tools.database import Database

GUIDES = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}


def _blocks(guide: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDES[guide], re.MULTILINE | re.DOTALL)


class Carrier(BaseHTTPRequestHandler):
    """Books under each key once. The first booking is kept, and its answer lost."""

    server: "Pickups"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        first = not self.server.made
        booked = {"confirmed": True, **body}
        self.server.made.setdefault(self.headers["idempotency-key"], booked)
        if not first:
            self._answer(201, booked)

    def do_GET(self) -> None:
        booked = self.server.made.get(self.path.rpartition("/")[2])
        self._answer(200 if booked else 404, booked)

    def _answer(self, status: int, content: Any) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


class Pickups(LoopbackServer[None]):
    def __init__(self) -> None:
        super().__init__(Carrier, [None])
        self.made: dict[str, Any] = {}


@pytest.fixture(scope="module")
def carrier() -> Iterator[Pickups]:
    with running(Pickups()) as server:
        yield server


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, carrier: Pickups) -> Path:
    """A clone in which somebody has followed the guide."""
    clone = tmp_path_factory.mktemp("writes") / "clone"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.db*", "notebooks", "tests")
    shutil.copytree(ROOT, clone, ignore=left_out)
    for block in _blocks("a-write-tool", "python"):
        address = f"http://127.0.0.1:{carrier.server_port}"
        _file(clone, block).write_text(block.replace("https://carrier.example", address))
    for block in _blocks("a-write-tool", "toml"):
        _add(_file(clone, block), block.partition("\n")[2])
    registry = clone / "tools" / "registry.py"
    new = "from tools.gifts import wrap_as_gift\nfrom tools.pickups import book_pickup\n"
    more = "\nWRITES = (*WRITES, wrap_as_gift, book_pickup)\n"
    registry.write_text(
        registry.read_text().replace("from tools.orders", f"{new}from tools.orders")
    )
    registry.write_text(registry.read_text() + more)
    return clone


def _file(clone: Path, block: str) -> Path:
    return clone / block.partition("\n")[0].removeprefix("# ")


def _add(file: Path, block: str) -> None:
    """Each section's lines under the heading that is there, or at the end."""
    text = file.read_text("utf-8")
    for heading, lines in re.findall(r"^(\[.*?\]\n)(.*?)(?=^\[|\Z)", block, re.M | re.S):
        place = f"\n{heading}"
        after = text.partition(place)
        text = f"{after[0]}{place}{lines}{after[2]}"
    file.write_text(text, "utf-8")


def _chat(clone: Path, *lines: str) -> str:
    env = {**environment(), "PYTHONPATH": str(clone)}
    options: Any = {"cwd": clone, "env": env, "capture_output": True, "text": True}
    done = subprocess.run([*COMMAND, "chat"], input="\n".join(lines), timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_the_guides_write_in_our_own_database_is_confirmed_and_done_once(clone: Path) -> None:
    wrap = "Please wrap order A-17 as a gift."
    foreign = "Por favor, wrap as gift el pedido A. ¿Es posible?"
    said = _chat(clone, wrap, "yes", wrap, "Wrap order A as a gift.", foreign)
    assert "Wrap order A-17 as a gift?" in said
    assert "Gift wrap of order A-17: done." in said
    assert "Gift wrap of order A-17, asked for before: done. Nothing was done again." in said
    assert (
        "Gift wrap for order A: not done. Order A is in transit, so it cannot be wrapped." in said
    )
    assert "no se puede envolver" in said
    with closing(sqlite3.connect(clone / "support-agent.db")) as db:
        assert db.execute("SELECT order_id FROM gift_wraps").fetchall() == [("A-17",)]


def test_the_guides_write_outside_is_found_again_and_done_once(
    clone: Path, carrier: Pickups
) -> None:
    book = "Please book a pickup of order B-21."
    said = _chat(clone, book, "yes", book)
    assert "Have the carrier collect order B-21 from you?" in said
    assert "Pickup of order B-21: done." in said
    assert "Pickup of order B-21, asked for before: done. Nothing was done again." in said
    assert [booked["order"] for booked in carrier.made.values()] == ["B-21"]
    carrier.made.clear()
    again = _chat(clone, book, "no")
    assert "Have the carrier collect order B-21 from you?" in again  # it does not stand any more


@pytest.mark.long
async def test_the_guides_client_confirms_two_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written: dict[str, Any] = {}
    exec(_blocks("on-a-server", "python")[0], written)
    with dev_server.serving(tmp_path) as url:
        message = await written["cancel_and_refund"](url)
    asked = capsys.readouterr().out.splitlines()
    assert sorted(asked) == ["Cancel order A-17?", "Refund $10.00 for order B?"]
    assert "Cancellation of order A-17: done." in message
    assert "Refund of $10.00 for order B: done." in message


async def test_the_guide_names_all_that_is_posted_to_a_help_desk(database: Database) -> None:
    posted: dict[str, Any] = {}

    async def hook(ticket: Any) -> bool:
        posted.update(ticket)
        return True

    await ledger_of(database).write_once(escalating())
    assert await Outbox(database, hook).deliver() == 0
    section = GUIDES["on-a-server"].partition("webhook")[2]
    told = {*posted, *posted["done"][0]}
    assert [name for name in sorted(told) if f"`{name}`" not in section] == []


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_that_a_guide_names_exists(guide: str) -> None:
    named = re.findall(r"`((?:tools|agent|tests)/[\w./-]*\w)`", GUIDES[guide])
    theirs = set(re.findall(r"^# (\S+)$", GUIDES[guide], re.MULTILINE))
    new = {"tests/data/words/fr.right.txt", "tools/policy/returns.fr.md"}
    assert [path for path in named if path not in theirs | new and not (ROOT / path).exists()] == []
