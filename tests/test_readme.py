"""The README tells the truth: its commands run, its code works, its names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import here
from tests.scripted import Scripted, answering, calling
from tests.turns import ask, graph_of
from tools.database import Database

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = ".venv/bin/support-agent "


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


SHELL = ("export SUPPORT_", "unset SUPPORT_")
COMMANDS = [line for block in _blocks("sh") for line in block.splitlines()]


@pytest.mark.parametrize("block", [block for block in _blocks("sh") if PROGRAM in block])
def test_the_commands_of_the_readme_run(block: str, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from agent.cli import main; main()"
    done = subprocess.run(
        ["sh", "-e", "-c", block.replace(PROGRAM, '"$PYTHON" -c "$CODE" ')],
        cwd=tmp_path,
        env={"PYTHON": sys.executable, "CODE": code, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_other_command_is_a_target_of_the_makefile() -> None:
    others = [line for line in COMMANDS if PROGRAM not in line and not line.startswith(SHELL)]
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert others
    assert {line.removeprefix("make ") for line in others} <= set(targets)


def test_every_path_that_the_readme_names_exists() -> None:
    named = re.findall(r"`((?:tools|agent|tests|notebooks|requirements|\.ci)/[\w./-]*)", README)
    assert named
    yours = {"tools/invoices.py"}
    assert not [path for path in named if path not in yours and not (ROOT / path).exists()]


def test_every_page_that_the_readme_points_to_exists() -> None:
    """With the heading, as GitHub turns it into an anchor."""
    for page, anchor in re.findall(r"\]\((docs/[\w-]+\.md)(?:#([\w-]+))?\)", README):
        lines = (ROOT / page).read_text("utf-8").splitlines()
        titles = [re.sub(r"[^\w -]", "", line.lstrip("# ")) for line in lines if line[:1] == "#"]
        assert not anchor or anchor in [title.lower().replace(" ", "-") for title in titles]


async def test_the_tool_that_the_readme_writes_works(database: Database) -> None:
    (source,) = _blocks("python")
    written: dict[str, object] = {"__name__": "readme"}
    exec(source, written)
    model = Scripted(
        calling(("c1", "get_invoice", {"order_id": "b-21"})),
        answering(("c1", "{order_id}: {issued_on}")),
    )
    graph = graph_of(model, database=database, tools=[written["get_invoice"]])
    state = await ask(graph, "What is the date on the invoice for B-21?")
    (card,) = state["answer"]["cards"]
    assert (card["subject"], card["source"]) == ("B-21", "model")


def test_the_case_that_the_readme_shows_passes(tmp_path: Path) -> None:
    (case,) = _blocks("yaml")
    (tmp_path / "case.yaml").write_text(case)
    done = here("evals", "--cases", str(tmp_path / "case.yaml"))
    assert done.code == 0, done.err
