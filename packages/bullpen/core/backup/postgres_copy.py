"""A copy of a PostgreSQL database as an SQLite file: all tables of ours, as of one moment.

So a backup is the same whatever the data lived in, and either kind can be made of it. It needs no
program of the server's, whose version would have to fit.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.backup import rows
from bullpen.core.backup.disk import create_file
from bullpen.core.backup.progress import ProgressCallback
from bullpen.core.backup.sqlite_copy import (
    make_one_file,
    open_scratch_database,
    translate_copy_errors,
)
from bullpen.core.errors import BackupFailed, StoreUnavailable
from bullpen.core.settings import Settings
from bullpen.core.store import migrate
from bullpen.core.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from bullpen.core.store.postgres import PostgresStore


def copy_postgres(
    store: PostgresStore, target: Path, revision: str, tell: ProgressCallback
) -> None:
    """Copy our tables, as they are now, to a new file with the same schema."""
    import psycopg

    from bullpen.core.store.postgres import translate_error

    create_file(target).close()
    _make_tables(target, revision, store.settings)
    with (
        translate_copy_errors(),
        closing(store.connect()) as server,
        closing(open_scratch_database(target)) as copy,
    ):
        server.autocommit = False
        server.read_only = True
        server.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            rows.copy_rows_from_postgres(server, copy, tell)
        except psycopg.Error as error:
            raise translate_error(error) or error from error
    make_one_file(target)


def _make_tables(target: Path, revision: str, settings: Settings) -> None:
    """The schema of this revision, with nothing in it."""
    try:
        with translate_copy_errors(), closing(SqliteStore(target, settings)) as empty:
            migrate.upgrade(empty, revision)
    except StoreUnavailable as error:  # of the copy: the server was not asked yet
        raise BackupFailed(f"the copy of the database cannot be written: {error}") from error
    make_one_file(target)
    target.with_name(f"{target.name}-turn").unlink(missing_ok=True)
