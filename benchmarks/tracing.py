"""What tracing costs a turn: its CPU without any tracing code, with tracing off and with it on, one
after the other in one run.

    python -m benchmarks.tracing [--turns 40]

A customer asks about two orders on the offline model, with journal and checkpoints in one SQLite
file. The traces go to a server in another process; sending them is counted. Printed are the
medians, and how many times that of a turn without any tracing code each is.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import statistics
import tempfile
import time
from contextlib import ExitStack, nullcontext
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

from langsmith import tracing_context

from agent import tracing
from agent.cli.session import Session, open_session
from agent.settings import Settings

QUESTION = "When do A-17 and B-21 arrive?"
CUSTOMER = "C-1001"
KINDS = ("without", "off", "on")
NOTHING = ("run_id", "trace_id", "told", "note", "note_turn")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_serve, args=[theirs], daemon=True)
    server.start()
    os.environ |= {"LANGSMITH_ENDPOINT": ours.recv(), "LANGSMITH_API_KEY": "k"}
    os.environ["LANGSMITH_TRACING"] = "true"
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), turns))
    server.terminate()


def _serve(pipe: Connection) -> None:
    from tests.ingest import ingest

    with ingest() as server:
        pipe.send(server.url)
        pipe.recv()


async def _measure(folder: Path, turns: int) -> None:
    settings = Settings(
        model="offline", database_url=f"sqlite:///{folder / 'b.db'}", trace_folder=folder / "traces"
    )
    cpu: dict[str, list[float]] = {kind: [] for kind in KINDS}
    async with open_session(settings, CUSTOMER) as session:
        for number in range(turns + 2):
            for kind in KINDS:
                took = await _turn(session, kind)
                if number >= 2:  # what is loaded once
                    cpu[kind].append(took)
    least = statistics.median(cpu["without"])
    for kind in KINDS:
        median = statistics.median(cpu[kind])
        print(f"tracing {kind:10}{median * 1e3:7.1f} ms{median / least:8.2f}")


async def _turn(session: Session, kind: str) -> float:
    thread = await session.thread(None)
    gc.collect()
    with ExitStack() as stack:
        stack.enter_context(tracing_context(enabled=kind == "on"))
        if kind == "without":
            for name in NOTHING:
                stack.enter_context(patch.object(tracing, name, return_value=None))
            stack.enter_context(patch.object(tracing, "call_run", lambda *_, **__: nullcontext({})))
        before = time.process_time()
        await session.ask(thread, QUESTION, lambda event: None)
        if kind == "on":
            tracing.flush()
        return time.process_time() - before


if __name__ == "__main__":
    main()
