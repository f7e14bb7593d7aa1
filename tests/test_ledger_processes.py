"""The ledger among processes: they race for one action, and are killed at every point of it."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.ledgers import ledger_of, refunded, refunding, said, states
from tools.database import Database

pytestmark = pytest.mark.on_both

KILLED = -9

WRITER = """
import asyncio, os, signal, sys
from dataclasses import replace
from agent.ledger import Ledger
from tests.ledgers import TOOLS, ledger_at, refunding, said

url, point = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

class Mortal(Ledger):
    async def _claim(self, *asked):
        if point == "before claim":
            die()
        return await super()._claim(*asked)

    async def _execute(self, *asked):
        if point == "after claim":
            die()
        done = await super()._execute(*asked)
        if point == "after commit":
            die()
        return done

async def refund(ctx, arguments, call_id):
    data = await TOOLS["request_refund"].run(ctx, arguments, call_id)
    if point == "inside the transaction":
        die()
    return data

async def main():
    ledger = ledger_at(url, lease=2)
    mortal = Mortal(**{name: getattr(ledger, name) for name in ledger.__dataclass_fields__})
    write = refunding("A", "10", call="1/1/c1")
    await ledger.look_up(write)
    print("ready", flush=True)
    sys.stdin.readline()
    write = replace(write, tool=replace(write.tool, run=refund))
    print(said(await mortal.write_once(write)))
    await ledger.database.close()

asyncio.run(main())
"""


RACE = """
import asyncio, os, sys
from tests.ledgers import ledger_at, refunding, said

url, count = sys.argv[1], int(sys.argv[2])
gate, opener = os.pipe()

async def main(n):
    ledger = ledger_at(url)
    write = refunding("A", "10", call=f"{n}/1/c1")
    await ledger.look_up(write)
    os.write(1, b"ready\\n")
    os.read(gate, 1)  # until nobody holds the other end
    os.write(1, f"{said(await ledger.write_once(write))}\\n".encode())
    await ledger.database.close()

children = []
for n in range(count):
    if not (child := os.fork()):
        os.close(opener)
        asyncio.run(main(n))
        os._exit(0)
    children.append(child)
sys.stdin.readline()
os.close(opener)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * count
"""


TWICE = """
import asyncio, os, sys, time
from agent.checkpoints import open_saver
from agent.store import open_database
from tests.scripted import Scripted, answering, calling
from langgraph.types import Command
from tests.turns import ask, config_of, graph_of, own, pending, results_of

url = sys.argv[1]
REFUND = {"order_id": "B", "amount": "10", "currency": "USD", "reason": "broken"}

async def turn(model, step):
    database = open_database(url)
    async with open_saver(database) as saver:
        state = await step(graph_of(model, checkpointer=saver, database=database))
    await database.close()
    return state

async def asked(graph):
    await ask(graph, "Refund 10 USD of B")
    return {pause.id: own(pause, "confirm") for pause in (await pending(graph)).values()}

async def confirmed(graph):  # by who may come after the other one has ended
    await graph.ainvoke(Command(resume=yes), config_of())
    return (await graph.aget_state(config_of())).values

yes = asyncio.run(turn(Scripted(calling(("c1", "request_refund", REFUND))), asked))
children = []
for n in range(2):
    if not (child := os.fork()):
        time.sleep(0.05 * n)
        state = asyncio.run(turn(Scripted(answering()), confirmed))
        os.write(1, f"{results_of(state)['1/c1']}\\n".encode())
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""


def _python(code: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


def _ended(process: "subprocess.Popen[str]", ready: int = 1) -> tuple[int, list[str], str]:
    """Lets it go once it has said often enough that it is ready: exit code, lines, complaints."""
    assert process.stdout is not None
    for _ in range(ready):
        assert process.stdout.readline() == "ready\n", process.communicate()
    out, err = process.communicate("go\n", timeout=60)
    return process.returncode, out.splitlines(), err


async def test_of_twenty_processes_that_want_one_action_one_carries_it_out(
    database: Database, database_url: str
) -> None:
    race = _python(RACE, database_url, 20)
    code, lines, err = await asyncio.to_thread(_ended, race, 20)
    assert (code, err) == (0, "")
    assert Counter(lines) == {"done": 1, "done, again": 19}
    assert await refunded(database) == [("A", "10")]
    assert await states(database) == ["done"]


@pytest.mark.parametrize(
    ("point", "left", "effects"),
    [
        pytest.param("before claim", [], 0, marks=pytest.mark.long),
        pytest.param("after claim", ["claimed"], 0, marks=pytest.mark.long),
        ("inside the transaction", ["claimed"], 0),
        ("after commit", ["done"], 1),
    ],
)
async def test_a_process_killed_at_any_point_leaves_one_effect_after_all(
    point: str, left: list[str], effects: int, database: Database, database_url: str
) -> None:
    assert _ended(_python(WRITER, database_url, point)) == (KILLED, [], "")
    assert await states(database) == left
    assert len(await refunded(database)) == effects
    assert _ended(_python(WRITER, database_url, "")) == (0, ["done"], "")
    assert await refunded(database) == [("A", "10")]
    again = await ledger_of(database).write_once(refunding("A", "10", call="2/1/c1"))
    assert said(again) == "done, again"
    assert await states(database) == ["done"]


async def test_two_processes_that_go_on_with_one_confirmation_refund_once(
    database: Database, database_url: str
) -> None:
    code, lines, err = await asyncio.to_thread(_ended, _python(TWICE, database_url), 0)
    assert (code, err) == (0, "")
    assert lines == ["('B', 'ok')", "('B', 'ok')", "[0, 0]"]
    assert await refunded(database) == [("B", "10")]
    assert await states(database) == ["done"]
