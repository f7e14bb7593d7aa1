"""`history`: checks, repairs and converts what goes over the wire to a model.

Without `--thread`, nothing of the graph, of a model's client or of the database is imported.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent.cli import process

if TYPE_CHECKING:
    from agent.history import Converted, Finding, History

SIZE = 200_000_000  # bytes of one file
STEP = 1_000  # messages after which progress is told

file_argument = click.argument("file", type=click.Path(path_type=Path))
out_option = click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write to this file, not to stdout."
)


@dataclass(frozen=True)
class Document:
    """A file as it was read. lines: whether it holds one message a line."""

    text: str
    value: Any
    lines: bool

    def written(self, value: Any) -> str:
        """Another value in the same form; the very same text for the very same value."""
        if value is self.value:
            return self.text
        if self.lines and isinstance(value, list):
            return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in value)
        return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


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
    from agent import history as doctor

    read = _history(file, _read(file).value)
    found = doctor.check(read, progress=_progress)
    about: dict[str, Any] = {
        "protocol": read.protocol,
        "messages": len(read.messages),
        "valid": not found,
    }
    if as_json:
        names = ("kind", "index", "path", "call_id", "message", "vendors")
        about["problems"] = [{name: getattr(each, name) for name in names} for each in found]
        click.echo(json.dumps(about, ensure_ascii=False))
    else:
        lines = [f"{each.path or 'all'}: {each.kind}: {_sentence(each)}" for each in found]
        verdict = f"{len(found)} problems" if found else "valid"
        click.echo("\n".join([*lines, f"{verdict}: {len(read.messages)} {read.protocol} messages"]))
    return 1 if found else 0


@history.command()
@file_argument
@click.option(
    "--results", type=click.Path(path_type=Path), help="JSON: {call id: its real result}."
)
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
    from agent import history as doctor

    document = _read(file)
    read = _history(file, document.value)
    given = _results(results, not_executed)
    known = _with_kept(thread, given) if thread else given
    repaired = doctor.repair(read, known, not_executed=not_executed)
    text = document.written(repaired.document)
    if diff:
        click.echo(_diff(document, repaired.document))
    else:
        _write(text, out)
    for each in repaired.done:
        process.say(f"{each.path}: {each.repaired}")
    for each in repaired.left:
        process.say(f"left: {each.path}: {_sentence(each)}")
    if foreign := sorted(given.keys() - {call.id for call in read.calls()}):
        process.say(f"Not used, since no call has this id: {', '.join(foreign)}")
    return 1 if repaired.left else 0


@history.command()
@file_argument
@click.option("--to", type=click.Choice(["responses", "chat", "messages"]), required=True)
@out_option
def convert(file: Path, to: Any, out: Path | None) -> int:
    """Write FILE in the form of another API, and name what that one cannot hold."""
    from agent import history as doctor

    document = _read(file)
    converted = doctor.convert(_history(file, document.value), to)
    _write(document.written(converted.document), out)
    for line in _lost(converted):
        process.say(line)
    return 0


def _problem(sentence: str) -> Exception:
    """Imported only now: the sentences of all languages come with it."""
    from agent.problems import Problem

    return Problem(f"{sentence} Nothing was done.")


def _read(file: Path) -> Document:
    try:
        if file.exists() and not file.is_file():
            raise _problem(f"{file} is no regular file.")
        if file.stat().st_size > SIZE:
            raise _problem(f"{file} is larger than {SIZE // 10**6} MB.")
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _problem(f"{file} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise _problem(f"{file} is not UTF-8 text.") from None
    return _parsed(file, text)


def _parsed(file: Path, text: str) -> Document:
    from agent.strict import NotStrictJson, decode

    try:
        return Document(text, decode(text), lines=False)
    except NotStrictJson as error:
        wrong = str(error)
    lines = [line for line in text.split("\n") if line.strip()]
    listed: list[Any] = []
    try:
        listed += (decode(line) for line in lines)
    except NotStrictJson as error:
        wrong = f"Message {len(listed) + 1}: {error}" if listed else wrong
    if not lines or len(listed) < len(lines):
        raise _problem(f"{file} cannot be used. {wrong}")
    return Document(text, listed, lines=True)


def _history(file: Path, value: Any) -> "History":
    from agent.history import NotHistory, read

    try:
        return read(value)
    except NotHistory as error:
        raise _problem(f"{file} holds no history. {error}") from None


def _results(file: Path | None, not_executed: tuple[str, ...]) -> dict[str, Any]:
    given = _read(file).value if file else {}
    if not isinstance(given, dict):
        raise _problem(f"{file} is no JSON object of results by call id.")
    if both := sorted(given.keys() & set(not_executed)):
        raise click.UsageError(f"{both[0]} has a result and is said not to have run.")
    return given


def _with_kept(thread: str, given: dict[str, Any]) -> Callable[[Any], Any]:
    """What is given by hand, and otherwise what the thread's own records say."""
    import asyncio

    kept = asyncio.run(_kept(thread))
    return lambda call: given[call.id] if call.id in given else kept(call)


async def _kept(thread: str) -> Callable[[Any], Any]:
    from agent import settings
    from agent.history.kept import results_of
    from agent.journal import ThreadJournal
    from agent.store import open_database

    database = open_database(settings.load().database_url)
    try:
        if await ThreadJournal(database, thread).owner() is None:
            raise _problem(f"There is no such thread: {thread}.")
        return await results_of(database, thread)
    finally:
        await database.close()


def _write(text: str, out: Path | None) -> None:
    """Half of a character is written as JSON writes it. A file is replaced whole, or not at all."""
    if out is None:
        click.echo(text, nl=False)
        return
    half = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        half.write_bytes(text.encode(errors="backslashreplace"))
        half.replace(out)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise _problem(f"{out} cannot be written ({error.strerror}).") from None


def _diff(document: Document, value: Any) -> str:
    before, after = (
        json.dumps(each, ensure_ascii=False, indent=2).split("\n")
        for each in (document.value, value)
    )
    return "\n".join(unified_diff(before, after, "before", "after", lineterm=""))


def _sentence(finding: "Finding") -> str:
    return f"{finding.message} {finding.vendors}".rstrip()


def _lost(converted: "Converted") -> list[str]:
    """A line for each thing that was lost, with its first place."""
    places: dict[str, list[str]] = {}
    for each in converted.lost:
        places.setdefault(each.what, []).append(each.path or "the request")
    return [
        f"not held: {what} ({paths[0]}" + (f" and {len(paths) - 1} more)" if paths[1:] else ")")
        for what, paths in places.items()
    ]


def _progress(done: int, of: int) -> None:
    if of > STEP and done % STEP == 0:
        process.say(f"{done} of {of} messages checked")
