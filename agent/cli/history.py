"""`history`: checks, repairs and converts what goes over the wire to a model.

Without `--thread`, nothing of the graph, of a model's client or of the database is imported.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any

import click

from agent import history as doctor
from agent.cli import process
from agent.history.mending import Known
from agent.problems import Problem
from agent.strict import NotStrictJson, decode

SIZE = 200_000_000  # bytes of one file
UNDONE = "Nothing was done."
STEP = 1_000  # messages after which progress is told
BETWEEN = re.compile(r"[\s,:]*")  # what stands between two values of JSON

PATH = click.Path(path_type=Path)
file_argument = click.argument("file", type=PATH)
out_option = click.option("-o", "--out", type=PATH, help="Write to this file, not to stdout.")


@dataclass(frozen=True)
class Document:
    """A file as it was read. lines: whether it holds one message a line."""

    text: str
    value: Any
    lines: bool

    def mended(self, value: Any, key: str) -> str:
        """Its text with other messages under the key; those that stayed keep their own text."""
        if value is self.value:
            return self.text
        before, after = (each[key] if key else each for each in (self.value, value))
        if not isinstance(before, list):
            return f"{_json(after)}\n"
        spans = list(islice(self._spans(key), len(before)))
        own = {id(raw): self.text[slice(*span)] for raw, span in zip(before, spans, strict=True)}
        apart = "\n" if self.lines else ", "
        between = self.text[spans[0][1] : spans[1][0]] if spans[1:] else apart
        told = between.join(own.get(id(raw)) or _json(raw, None) for raw in after)
        return self.text[: spans[0][0]] + told + self.text[spans[-1][1] :]

    def _spans(self, key: str) -> Iterator[tuple[int, int]]:
        """Where each message begins and ends: line after line, or in the list under the key."""
        place = 0 if self.lines else self.text.index("{" if key else "[") + 1
        if key:
            members = self._values(place)
            while (name := next(members))[2] != key:
                next(members)
            place = self.text.index("[", name[1]) + 1
        return ((start, end) for start, end, _ in self._values(place))

    def _values(self, end: int) -> Iterator[tuple[int, int, Any]]:
        """The values that follow one another from a place on; the text is known to be JSON."""
        decoder = json.JSONDecoder()
        while between := BETWEEN.match(self.text, end):
            value, end = decoder.raw_decode(self.text, between.end())
            yield between.end(), end, value


@click.group()
def history() -> None:
    """Histories in the form of the Responses, Chat Completions or Messages API.

    FILE is a request, a response or a list of messages as JSON, or one message a line (JSONL).
    """


@history.command()
@file_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(file: Path, as_json: bool) -> int:
    """Say what an API would refuse in FILE, and what to do about it."""
    with _used(file):
        read = doctor.read(_read(file).value)
        found = doctor.check(read, progress=_progress)
    about: dict[str, Any] = {"protocol": read.protocol, "messages": len(read.messages)}
    if as_json:
        names = ("kind", "index", "path", "call_id", "message", "vendors")
        problems = [{name: getattr(each, name) for name in names} for each in found]
        about |= {"valid": not found, "problems": problems}
        click.echo(json.dumps(about, ensure_ascii=False))
    else:
        lines = [f"{each.path or 'all'}: {each.kind}: {each}" for each in found]
        verdict = f"{len(found)} problems" if found else "valid"
        lines.append(f"{verdict}: {len(read.messages)} {read.protocol} messages")
        click.echo("\n".join(lines))
    return 1 if found else 0


@history.command()
@file_argument
@click.option("--results", type=PATH, help="JSON: {call id: its real result}.")
@click.option("--thread", help="Take the results from this thread's journal and ledger.")
@click.option("--not-executed", multiple=True, metavar="CALL_ID", help="This call never ran.")
@out_option
@click.option("--diff", is_flag=True, help="Show what would be done, and write nothing.")
def repair(
    file: Path,
    results: Path | None,
    thread: str | None,
    not_executed: tuple[str, ...],
    out: Path | None,
    diff: bool,
) -> int:
    """Put real results where they are missing, and take out what belongs to no call.

    No value and no id is made up: a call whose result is not known is named and left.
    """
    with _used(file):
        document = _read(file)
        read = doctor.read(document.value)
        given = _results(results, not_executed)
        kept = _kept(thread) if thread else None
        repaired = doctor.repair(read, given, not_executed=not_executed, kept=kept)
        if diff:
            both = (document.value, repaired.document)
            before, after = (_json(each).split("\n") for each in both)
            click.echo("\n".join(unified_diff(before, after, "before", "after", lineterm="")))
            process.say("Nothing was written. This is what a repair does:")
        else:
            _write(document.mended(repaired.document, read.key), out)
    for each in repaired.done:
        process.say(f"{each.path}: {each.repaired}")
    for each in repaired.left:
        process.say(f"left: {each.path}: {each}")
    if repaired.unused:
        process.say(f"Not used, since no call needs it: {', '.join(repaired.unused)}")
    return 1 if repaired.left else 0


@history.command()
@file_argument
@click.option("--to", type=click.Choice(["responses", "chat", "messages"]), required=True)
@out_option
def convert(file: Path, to: Any, out: Path | None) -> int:
    """Write the history in FILE in the form of another API, and name what is left out.

    What an API would refuse in it is in both forms; the exit code is 1 then.
    """
    with _used(file):
        document = _read(file)
        read = doctor.read(document.value)
        converted, found = doctor.convert(read, to), doctor.check(read)
        told = converted.document
        lines = document.lines and isinstance(told, list)
        text = "\n".join(_json(each, None) for each in told) if lines else _json(told)
        _write(document.text if told is document.value else f"{text}\n", out)
    places: dict[str, list[str]] = {}
    for each in converted.lost:
        places.setdefault(each.what, []).append(each.path or "the request")
    for what, (first, *more) in places.items():
        process.say(f"left out: {what} ({first}" + (f" and {len(more)} more)" if more else ")"))
    if found:
        kinds = ", ".join(dict.fromkeys(each.kind for each in found))
        process.say(f"{len(found)} problems are in it: {kinds}. `history check` says more.")
    return 1 if found else 0


@contextmanager
def _used(file: Path) -> Iterator[None]:
    try:
        yield
    except doctor.NotHistory as error:
        raise Problem(f"{file} holds no history. {error} {UNDONE}") from None
    except RecursionError:
        raise Problem(f"{file} is nested too deeply. {UNDONE}") from None


def _read(file: Path) -> Document:
    text = process.text_of(file, SIZE, UNDONE)
    try:
        return Document(text, decode(text), lines=False)
    except NotStrictJson as error:
        wrong = str(error)
    listed: list[Any] = []
    try:
        listed += (decode(line) for line in text.split("\n") if line.strip())
    except NotStrictJson as error:
        wrong = f"Message {len(listed) + 1}: {error}" if listed else wrong
    else:
        if listed:
            return Document(text, listed, lines=True)
        wrong = "It is empty."
    raise Problem(f"{file} cannot be used. {wrong} {UNDONE}")


def _results(file: Path | None, not_executed: tuple[str, ...]) -> dict[str, Any]:
    given = _read(file).value if file else {}
    if not isinstance(given, dict):
        raise Problem(f"{file} is no JSON object of results by call id. {UNDONE}")
    if both := sorted(given.keys() & set(not_executed)):
        raise click.UsageError(f"{both[0]} has a result and is said not to have run.")
    return given


def _kept(thread: str) -> Known:
    import asyncio

    from agent import settings
    from agent.history.kept import results_of

    if known := asyncio.run(results_of(settings.load().database_url, thread)):
        return known
    raise Problem(f"There is no such thread: {thread}. {UNDONE}")


def _write(text: str, out: Path | None) -> None:
    """Half of a character is written as JSON writes it. A file is replaced whole, or not at all."""
    if out is None:
        click.echo(text, nl=False)
        return
    target = Path(os.path.realpath(out))  # a link stays one
    half = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        if out.exists() and not (out.is_file() and os.access(out, os.W_OK)):
            raise Problem(f"{out} is no regular file that may be written. {UNDONE}")
        half.touch()
        if out.exists():
            shutil.copymode(out, half)
        half.write_bytes(text.encode(errors="backslashreplace"))
        half.replace(target)
    except OSError as error:
        raise Problem(f"{out} cannot be written ({error.strerror}). {UNDONE}") from None
    finally:
        with suppress(OSError):
            half.unlink()


def _json(value: Any, indent: int | None = 2) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _progress(done: int, of: int) -> None:
    if of > STEP and done % STEP == 0:
        process.say(f"{done} of {of} messages checked")
