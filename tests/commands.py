"""The command as people run it: in a process of its own, or in this one where that adds nothing."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.cli import main

ROOT = Path(__file__).parent.parent
COMMAND = (sys.executable, "-c", "from agent.cli import main; main()")
SECONDS = 60  # after which a process hangs

COMMON: dict[str, str] = {}
"""The variables of every command of a test: see `commands_on` in `conftest.py`."""


@dataclass(frozen=True)
class Done:
    """What a command left behind: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**variables: str) -> dict[str, str]:
    """Nothing of this machine's environment but where programs are, and the given variables."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "LANG": "C.UTF-8",
        **COMMON,
        **variables,
    }


def start(*arguments: str | bytes, **variables: str) -> subprocess.Popen[bytes]:
    """A process with pipes on all sides, in the working directory of the test."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes], stdin: str | bytes = b"") -> Done:
    """Waits for the process; one that hangs is killed, and the test fails."""
    try:
        out, err = process.communicate(_bytes(stdin), timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    return Done(process.returncode, out.decode(), err.decode())


def run(*arguments: str | bytes, stdin: str | bytes = b"", **variables: str) -> Done:
    """The command from start to end, as a process."""
    return finish(start(*arguments, **variables), stdin)


def here(*arguments: str, stdin: str | bytes = b"", **variables: str) -> Done:
    """The same in this process, without the seconds that a start costs; nothing else differs."""
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        _environment({**COMMON, **variables}),
        _stdin(stdin),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int), f"the command did not end with an exit code: {err.getvalue()}"
    return Done(code, out.getvalue(), err.getvalue())


def refused(done: Done, *said: str, code: int = 2) -> None:
    """Asserts that a command said no as it should: in words, on stderr, with its exit code."""
    assert done.code == code, done
    assert done.out == "", done
    assert done.err.strip(), "it said nothing"
    assert "Something unexpected" not in done.err, done.err
    assert "Traceback" not in done.err, done.err
    for words in said:
        assert words in done.err, done.err


def thread_of(done: Done) -> str:
    """The thread that a command began and named."""
    named = re.findall(r"^thread (\S+)$", done.err, re.MULTILINE)
    assert len(named) == 1, done.err
    return str(named[0])


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in before:
        if name.lower().endswith("_proxy"):
            del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _stdin(content: str | bytes) -> Iterator[None]:
    before = sys.stdin
    # As Python opens it in a locale such as C.UTF-8: any byte can come in.
    sys.stdin = io.TextIOWrapper(io.BytesIO(_bytes(content)), "utf-8", errors="surrogateescape")
    try:
        yield
    finally:
        sys.stdin = before


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
