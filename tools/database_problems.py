"""What a database finds wrong, as one sentence for a person, without the password of its URL."""

import sqlite3
import sys
from typing import Any

from sqlalchemy import URL
from sqlalchemy.exc import DatabaseError
from sqlalchemy.exc import TimeoutError as NoneFree

# By a part of what SQLite says.
_SQLITE = {
    "not a database": "is not a SQLite database; nothing was changed. Move it away or name another",
    "malformed": "is damaged; restore it from a copy or name another",
    "unable to open": "cannot be opened: it is a directory, a pipe or a device, or its folder is"
    " missing or read-only",
    "readonly": "may only be read; nothing was written. Make it writable or name another",
    "locked": "is in use by another program; nothing was written. Try again in a moment",
}
_SILENT = "cannot be reached: no server answers there. Start it, or name another"
_SHUT = "takes no user of this name with this password. Put the right ones into the URL"
_LOST = (
    "broke the connection off; what was under way may not have been written. Try again in a moment"
)
_FORBIDDEN = "does not allow its user to do this; nothing was written. Grant it, or name another"
_MISSING = "does not exist on its server. Create it, or name another"
_STARTING = "is only starting, or ending. Try again in a moment"
_BUSY = "has no connection free. Try again in a moment, or let it take more"
_IN_USE = _SQLITE["locked"]
# By the beginning of PostgreSQL's code, the longest first.
_CODES = {
    "25006": "may only be read; nothing was written. Name one that may be written",
    "25P03": _LOST,
    "25P04": _LOST,
    "3D000": _MISSING,
    "42501": _FORBIDDEN,
    "42P07": "has tables of another program, named as ours; nothing was changed. Name another",
    "53300": _BUSY,
    "55P03": _IN_USE,
    "57014": "gives a statement no more time than it took; nothing was written. Try again",
    "57P": _LOST,
    "08": _LOST,
    "28": _SHUT,
    "40": _IN_USE,
}
# Where there is no code: by a part of what is said.
_WORDS = {
    "authentication failed": _SHUT,
    "no password": _SHUT,
    "pg_hba.conf": "does not let this machine in, or not in this way (see its pg_hba.conf)",
    "role ": _SHUT,
    "permission denied": _FORBIDDEN,
    "does not exist": _MISSING,
    "starting up": _STARTING,
    "shutting down": _STARTING,
    "recovery mode": _STARTING,
    "too many": _BUSY,
    "remaining connection slots": _BUSY,
    "QueuePool": _BUSY,
    "couldn't get a connection": _LOST,
    "refused": _SILENT,
    "No such file": _SILENT,
    "resolve host": _SILENT,
    "timeout expired": _SILENT,
    "connection option": "has an option in its URL that is not known. Nothing was opened",
    "bad value for": "has an option in its URL that cannot be read. Nothing was opened",
    "connection is lost": _LOST,
    "connection is closed": _LOST,
    "closed the connection": _LOST,
    "terminating connection": _LOST,
    "consuming input failed": _LOST,
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
    found = (s for part, s in known.items() if (code.startswith(part) if code else part in said))
    what = next(found, None)
    if what is None and _OF_A_STATEMENT & {kind.__name__ for kind in type(original).__mro__}:
        return None
    return DatabaseProblem(f"The database {place(url)} {what or f'failed: {said}'}.")


def place(url: URL) -> Any:
    """Where the database is, for a person."""
    if url.get_backend_name() == "sqlite":
        return url.database
    shown = {name: value for name, value in url.query.items() if name in ("host", "port")}
    return url.set(drivername="postgresql", query=shown).render_as_string()
