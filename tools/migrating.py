"""The tables of a database: made, and brought to the newest revision, by Alembic."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text

from tools.database_problems import DatabaseProblem


@dataclass(frozen=True)
class Branch:
    """One line of migrations with a version table of its own, `{name}_version`.

    `folder` holds Alembic's files, named `<revision>_<words>.py`; sorted by name they are in the
    order of the history. `seed` writes the first data of a new SQLite database.
    """

    name: str
    folder: Path
    seed: Callable[[Connection], None] | None = None

    @property
    def version_table(self) -> str:
        return f"{self.name}_version"

    @property
    def revisions(self) -> list[str]:
        """All that are known here, oldest first: from the file names, as Alembic imports slowly."""
        return sorted(path.name.split("_")[0] for path in self.folder.glob("[0-9]*_*.py"))


def migrate(engine: Engine, branches: Sequence[Branch], *, demo: bool, patience: float) -> None:
    """Does what is missing, in one transaction. patience: seconds to wait for other programs."""
    with engine.connect() as connection:
        if all(_revision(connection, b) == b.revisions[-1] for b in branches):
            return
    sqlite = engine.dialect.name == "sqlite"
    if sqlite:
        _refuse_anothers(engine, branches)
        _write_ahead(str(engine.url.database), patience)
    immediate = engine.execution_options(begin="BEGIN IMMEDIATE")
    with immediate.begin() as connection:
        if not sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('migrations'))"))
        for branch in branches:
            new = _revision(connection, branch) is None
            _upgrade(connection, branch)
            if new and sqlite and demo and branch.seed:
                branch.seed(connection)


def _refuse_anothers(engine: Engine, branches: Sequence[Branch]) -> None:
    """A file is one program's; on a server the tables of several may lie side by side."""
    tables = set(inspect(engine).get_table_names())
    if tables and not tables & {branch.version_table for branch in branches}:
        raise DatabaseProblem(
            f"The database {engine.url.database} is another program's: it has tables, and none of"
            " ours. Nothing was changed; name another file."
        )


def _write_ahead(file: str, patience: float) -> None:
    """Readers beside a writer. The switch does not wait for other processes by itself."""
    deadline = time.monotonic() + patience
    with closing(sqlite3.connect(file, timeout=patience)) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def _revision(connection: Connection, branch: Branch) -> str | None:
    if not inspect(connection).has_table(branch.version_table):
        return None
    statement = text(f"SELECT version_num FROM {branch.version_table}")
    revision: str | None = connection.scalar(statement)
    if revision is not None and revision not in branch.revisions:
        raise DatabaseProblem(
            f"The database was made by a newer version of this program ({branch.name} schema "
            f"{revision}, known here up to {branch.revisions[-1]}). Nothing was changed; "
            "update the program or name another database."
        )
    return revision


def _upgrade(connection: Connection, branch: Branch) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(branch.folder), version_locations=[str(branch.folder)])

    def steps(revision: Any, _context: Any) -> Any:
        return script._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=branch.version_table)
        environment.run_migrations()
