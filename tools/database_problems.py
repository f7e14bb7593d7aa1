"""What a database finds wrong, as one sentence for a person, without the password of its URL."""

import sqlite3
import sys
from typing import Any

from sqlalchemy import URL
from sqlalchemy.exc import DatabaseError
from sqlalchemy.exc import TimeoutError as NoneFree

_SILENT = "cannot be reached: no server answers there. Start it, or name another"
_SHUT = "takes no user of this name with this password. Put the right ones into the URL"
_LOST = (
    "broke the connection off; what was under way may not have been written. Try again in a moment"
)
_FORBIDDEN = "does not allow its user to do this; nothing was written. Grant it, or name another"
_MISSING = "does not exist on its server. Create it, or name another"
_STARTING = "is only starting, or ending. Try again in a moment"
_BUSY = "has no connection free. Try again in a moment, or let it take more"
_OTHER = "is not a SQLite database; nothing was changed. Move it away or name another"
_IN_USE = "is in use by another program; nothing was written. Try again in a moment"
# Each sentence with what it stands for: parts of what SQLite says.
_SQLITE = {
    _OTHER: ["not a database"],
    "is damaged; restore it from a copy or name another": ["malformed"],
    "cannot be opened: it is a directory, a pipe or a device, or its folder is missing or"
    " read-only": ["unable to open"],
    "may only be read; nothing was written. Make it writable or name another": ["readonly"],
    _IN_USE: ["locked"],
}
# The same for PostgreSQL: how its codes begin.
_CODES = {
    "may only be read; nothing was written. Name one that may be written": ["25006"],
    "has tables of another program, named as ours; nothing was changed. Name another": ["42P07"],
    "gives a statement no more time than it took; nothing was written. Try again": ["57014"],
    _MISSING: ["3D000"],
    _FORBIDDEN: ["42501"],
    _BUSY: ["53300"],
    _IN_USE: ["40", "55P03"],
    _LOST: ["08", "25P03", "25P04", "57P"],
    _SHUT: ["28"],
}
# Where there is no code: parts of what is said.
_WORDS = {
    _SHUT: ["authentication failed", "no password", "role "],
    "does not let this machine in, or not in this way (see its pg_hba.conf)": ["pg_hba.conf"],
    _FORBIDDEN: ["permission denied"],
    _MISSING: ["does not exist"],
    _STARTING: ["starting up", "shutting down", "recovery mode"],
    _BUSY: ["too many", "remaining connection slots", "QueuePool"],
    _SILENT: ["refused", "No such file", "resolve host", "timeout expired"],
    "has an option in its URL that is not known. Nothing was opened": ["connection option"],
    "has an option in its URL that cannot be read. Nothing was opened": ["bad value for"],
    _LOST: [
        "couldn't get a connection",
        "connection is lost",
        "connection is closed",
        "closed the connection",
        "terminating connection",
        "consuming input failed",
    ],
}
_FULL = ("is full", "No space left", "disk I/O")  # the last also where a file may grow no more
_OF_A_STATEMENT = {"IntegrityError", "DataError", "ProgrammingError", "NotSupportedError"}


class DatabaseProblem(Exception):
    """The database cannot be used. The message is for a person."""


class NoRoom(DatabaseProblem):
    """What was to be written does not fit on the disk."""


def errors() -> tuple[type[Exception], ...]:
    """What the databases raise that are in use: SQLAlchemy's errors, and the drivers' own."""
    psycopg = sys.modules.get("psycopg")
    return (DatabaseError, NoneFree, sqlite3.DatabaseError, *([psycopg.Error] if psycopg else ()))


def problem(url: URL, error: Exception) -> DatabaseProblem | None:
    """The sentence for an error; None where it speaks of a statement, not of the database."""
    original = getattr(error, "orig", None) or error
    code = getattr(original, "sqlstate", None) or ""
    said = str(original).strip().split("\n")[0]
    if code == "53100" or (not code and any(part in said for part in _FULL)):
        return NoRoom(
            f"The database {place(url)} has no room: its disk is full, or it may grow no more."
            " What was under way was not written."
        )
    known = _SQLITE if url.get_backend_name() == "sqlite" else _CODES if code else _WORDS
    fits = code.startswith if code else said.__contains__
    what = next((words for words, parts in known.items() if any(map(fits, parts))), None)
    if what is None and _OF_A_STATEMENT & {kind.__name__ for kind in type(original).__mro__}:
        return None
    return DatabaseProblem(f"The database {place(url)} {what or f'failed: {said}'}.")


def place(url: URL) -> Any:
    """Where the database is, for a person."""
    if url.get_backend_name() == "sqlite":
        return url.database
    shown = {name: value for name, value in url.query.items() if name in ("host", "port")}
    return url.set(drivername="postgresql", query=shown).render_as_string()
