"""The process of a command: what it writes, and the signal that ends it."""

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agent.problems import Problem

LONGEST = 1_000  # characters of a line on stderr


class Unwritten(Exception):
    """The answer could not be written. The message is for a person."""


class _Answer(io.FileIO):
    """stdout. A reader that is gone needs no sentence: click ends the command silently."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is still held would be written again at the end of the process.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            raise Unwritten(f"The answer could not be written ({error.strerror}).") from error


class _Progress(io.FileIO):
    """stderr: the command goes on without it."""

    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            return super().write(data)
        return len(data)


def take() -> list[int]:
    """Makes the process a command's, and returns the signals that will have ended it."""
    sys.stdout, sys.stderr = _opened(_Answer, 1), _opened(_Progress, 2)
    came: list[int] = []

    def end(number: int, frame: object) -> None:
        came.append(number)
        as_ctrl_c = signal.getsignal(signal.SIGINT)  # asyncio's, while it runs
        interrupt = as_ctrl_c if callable(as_ctrl_c) else signal.default_int_handler
        interrupt(signal.SIGINT, None)

    signal.signal(signal.SIGTERM, end)
    return came


def _opened(kind: type[io.FileIO], number: int) -> io.TextIOWrapper:
    """A stream in UTF-8, whatever the locale: JSON is nothing else, and no letter is lost.

    One that was closed becomes one that cannot be written; else the next file had its number.
    """
    try:
        os.fstat(number)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_RDONLY), number)
    buffer = io.BufferedWriter(kind(number, "w", closefd=False))
    return io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=True)


@contextmanager
def done(what: str) -> Iterator[None]:
    """Where the answer cannot be written, it is said what was done nevertheless."""
    try:
        yield
    except Unwritten as lost:
        raise Unwritten(f"{lost} {what}") from lost


def text_of(file: Path, size: int, undone: str) -> str:
    """A file of at most so many bytes of UTF-8 text. Raises Problem; undone: its last sentence."""
    try:
        if file.exists() and not file.is_file():
            raise Problem(f"{file} is no regular file. {undone}")
        if file.stat().st_size > size:
            raise Problem(f"{file} is larger than {size // 10**6} MB. {undone}")
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise Problem(f"{file} cannot be read ({error.strerror}). {undone}") from None
    except UnicodeDecodeError:
        raise Problem(f"{file} is not UTF-8 text. {undone}") from None


def say(text: str) -> None:
    """Tells a person on stderr: lines of a bounded length, without what a terminal obeys."""
    for line in text.splitlines():
        short = line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-300:]}"
        plain = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in short)
        print("".join(plain), file=sys.stderr)
