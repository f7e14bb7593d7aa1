"""Where traces wait until LangSmith has them: in a folder, so that no end of a process loses one.

A trace is a file of lines, `{"post": run}` where a run began and `{"patch": run}` where it ended.
The process that writes it holds a lock on it until it was sent; a file without a lock was left
behind. Where nothing can be written, a trace waits in memory.
"""

import atexit
import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import IO, Any

log = logging.getLogger(__name__)

Run = dict[str, Any]
Ingest = Callable[[list[Run], list[Run]], None]
ROOM = 100e6  # bytes that a folder may hold
REST = 30.0  # seconds without a try after LangSmith took nothing
PATIENCE = 2.0  # seconds that the end of a process waits for LangSmith
SUFFIX = ".trace.jsonl"
UNREAD = (ValueError, TypeError, LookupError, AttributeError)


class NotTaken(Exception):
    """LangSmith did not take a trace. The message says why, for a person.

    alone: it is this trace that it does not take.
    """

    def __init__(self, message: str, *, alone: bool = False) -> None:
        super().__init__(message)
        self.alone = alone


@dataclass
class Trace:
    """The runs of one turn. posts: as they began, completed by their end; patches: ends alone."""

    posts: dict[str, Run] = field(default_factory=dict)
    patches: dict[str, Run] = field(default_factory=dict)
    file: IO[str] | None = None
    path: Path | None = None
    left: int = 0

    def take(self, what: str, run: Run) -> None:
        begun = self.posts.get(run["id"])
        if begun is None:
            (self.posts if what == "post" else self.patches)[run["id"]] = run
            return
        metadata = {**begun["extra"]["metadata"], **run["extra"]["metadata"]}
        inputs = run.get("inputs") or begun.get("inputs")
        begun |= {**run, "inputs": inputs, "extra": {"metadata": metadata}}

    def read(self) -> None:
        """What its file holds, but for what was damaged, or cut when a process was killed."""
        for line in self.file or ():
            with suppress(*UNREAD):
                for what, run in json.loads(line).items():
                    self.take(what, run)

    @property
    def runs(self) -> tuple[list[Run], list[Run]]:
        return list(self.posts.values()), list(self.patches.values())

    def break_off(self) -> None:
        """What never ended, since its process did, ended with the last that is known of it."""
        runs = [*self.posts.values(), *self.patches.values()]
        times = [str(run.get("end_time") or run.get("start_time") or "") for run in runs]
        for run in runs:
            if not run.get("end_time"):
                run |= {"end_time": max(times), "error": "the process ended"}

    def forget(self) -> None:
        """It was sent."""
        with suppress(OSError):
            if self.path is not None:
                self.path.unlink()

    def close(self) -> None:
        with suppress(OSError):  # what a full disk did not take is told again, and refused again
            if self.file is not None:
                self.file.close()


class Spool:
    """Takes runs from a turn without holding it up, and hands whole traces to `ingest`.

    One thread writes and another sends, so that what LangSmith is slow to take is on the disk.
    """

    def __init__(self, folder: Path, ingest: Ingest) -> None:
        """ingest: posts and patches; raises NotTaken."""
        self._folder, self._ingest = folder, ingest
        self._runs: Queue[tuple[str, Run]] = Queue()
        self._ended: Queue[Trace] = Queue()
        self._traces: dict[str, Trace] = {}
        self._starting, self._works = threading.Lock(), False
        self._no_try_before = 0.0
        self._gave_up = False

    def put(self, what: str, run: Run) -> None:
        with self._starting:
            if not self._works:
                self._work()
        self._runs.put((what, run))

    def flush(self, seconds: float = PATIENCE) -> None:
        """Waits for what is on its way; what is not sent then stays in the folder."""
        until = time.monotonic() + seconds
        while self._runs.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.002)
        while self._ended.unfinished_tasks and time.monotonic() < until and not self._gave_up:
            time.sleep(0.002)
        self._gave_up = bool(self._ended.unfinished_tasks)
        if self._gave_up:
            make_room(self._folder)

    def _work(self) -> None:
        self._works = True
        for served in ((self._runs, self._take), (self._ended, self._send)):
            threading.Thread(target=_serve, args=served, name="traces", daemon=True).start()
        atexit.register(self.flush)  # when the answer is out; LangSmith may take its time

    def _take(self, item: tuple[str, Run]) -> None:
        what, run = item
        id_, is_root = run["trace_id"], run["id"] == run["trace_id"]
        trace = self._traces.get(id_) or self._begun(id_)
        trace.take(what, run)
        trace.left += 1 if what == "post" else -1
        if trace.file is not None:
            with suppress(OSError):  # a full disk
                trace.file.write(json.dumps({what: run}) + "\n")
                trace.file.flush()
        if what == "patch" and (is_root or trace.left <= 0):
            self._ended.put(self._traces.pop(id_))

    def _begun(self, id_: str) -> Trace:
        trace = self._traces[id_] = Trace()
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            trace.path = self._folder / f"{time.time_ns()}-{id_}{SUFFIX}"
            trace.file = open(trace.path, "x", encoding="utf-8", opener=private)  # noqa: SIM115
            fcntl.flock(trace.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return trace

    def _send(self, trace: Trace) -> None:
        try:
            if time.monotonic() >= self._no_try_before:
                self._ingest(*trace.runs)
                trace.forget()
        except NotTaken as refusal:
            if not refusal.alone:
                self._no_try_before = time.monotonic() + REST
            log.warning("traces are %s: %s", "kept" if trace.file else "lost", refusal)
        finally:
            trace.close()
        make_room(self._folder)


def _serve(queue: Queue[Any], work: Callable[[Any], None]) -> None:
    while True:
        item = queue.get()
        try:
            work(item)
        except Exception as error:  # a trace is never worth a turn
            log.warning("a trace was lost (%s)", type(error).__name__)
        queue.task_done()


def make_room(folder: Path, bytes_: float = ROOM) -> None:
    """Removes the oldest traces, so that the others are no larger than this together."""
    with suppress(OSError):  # another process sees to the folder as well
        sizes = [(file, file.stat().st_size) for file in files(folder)]
        while sizes and sum(size for _, size in sizes) > bytes_:
            sizes.pop(0)[0].unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """The traces of a folder, oldest first."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def send_left(folder: Path, ingest: Ingest) -> Iterator[str]:
    """Sends what was left in a folder, and says what became of each trace: "sent", "busy" (another
    process writes or sends it), "refused" or "unreadable".

    Raises NotTaken where LangSmith takes nothing; that trace and those behind it stay.
    """
    for file in files(folder):
        try:
            with open(file, encoding="utf-8", errors="replace") as lines:
                yield _sent(Trace(file=lines, path=file), ingest)
        except OSError:
            yield "unreadable" if file.exists() else "busy"


def _sent(trace: Trace, ingest: Ingest) -> str:
    if not _is_ours(trace.file):
        return "busy"
    trace.read()
    if not any(trace.runs):
        return "unreadable"
    trace.break_off()
    try:
        ingest(*trace.runs)
    except NotTaken as refusal:
        if not refusal.alone:
            raise
        return "refused"
    trace.forget()
    return "sent"


def _is_ours(file: Any) -> bool:
    """Whether nobody holds the file, and nobody sent it before we came to hold it."""
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(file.fileno()).st_nlink > 0
    return False


def read(file: Path) -> list[Run]:
    """The runs of a trace, as they ended, in the order in which they began."""
    with open(file, encoding="utf-8") as lines:
        trace = Trace(file=lines)
        trace.read()
    runs = (run for kind in trace.runs for run in kind)
    return sorted(runs, key=lambda run: str(run["dotted_order"]))


def private(name: Path | str, flags: int) -> int:
    return os.open(name, flags, 0o600)
