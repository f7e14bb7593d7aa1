"""Where the reports of a run go, and where it is kept until it is over."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent.problems import Problem
from evals.case import Model
from evals.outcomes import OUTCOME, Outcome
from evals.page import page
from evals.report import Report, junit, markdown


class Kept(Model):
    """An outcome of a run that is not over."""

    run: str
    outcome: Outcome


class Folder:
    """Until a run is over, `results.part.jsonl` holds what is done. One run at a time writes here.

    The lock is on the folder itself, and ends with the process, however that ends.
    """

    def __init__(self, path: Path, run: str) -> None:
        """run: a digest of all that a result depends on; a part of another run is no part of it."""
        self.path, self._run, self._part = path, run, path / "results.part.jsonl"
        with _told(path):
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                why = f"Another run is writing into {path}. Wait for it, or name another folder."
                raise Problem(f"{why} No case was run.") from None

    def close(self) -> None:
        os.close(self._lock)

    def done(self) -> list[Outcome]:
        """What a run like this one had done when it was broken off. Nothing else is kept."""
        outcomes = []
        with _told(self._part), suppress(FileNotFoundError):
            for line in self._part.read_text(encoding="utf-8", errors="replace").split("\n"):
                with suppress(ValueError):  # the last one may be torn
                    if (kept := Kept.model_validate_json(line)).run == self._run:
                        outcomes.append(kept.outcome)
        self._put(self._part.name, b"".join(map(self._line, outcomes)))
        return outcomes

    def keep(self, outcome: Outcome) -> None:
        with _told(self._part), self._part.open("ab") as file:
            file.write(self._line(outcome))

    def _line(self, outcome: Outcome) -> bytes:
        return Kept(run=self._run, outcome=outcome).model_dump_json().encode() + b"\n"

    def write(self, report: Report) -> None:
        """All files of a run that is over."""
        rows = [OUTCOME.dump_json(outcome) + b"\n" for outcome in report.plays]
        self._put("results.jsonl", b"".join(rows))
        self._put("report.md", markdown(report).encode())
        self._put("report.html", page(report).encode())
        self._put("junit.xml", junit(report))
        self._part.unlink(missing_ok=True)

    def _put(self, name: str, content: bytes) -> None:
        """Whole or not at all, also where the run is killed."""
        with _told(self.path / name):
            (self.path / f"{name}.new").write_bytes(content)
            (self.path / f"{name}.new").replace(self.path / name)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Problem(f"{path} cannot be written ({error.strerror}).") from None
