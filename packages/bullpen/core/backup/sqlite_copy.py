"""A copy of an SQLite database of one moment, while others write to it.

The copy is made in pieces within one read transaction of ours: so writers go on, no piece has to
be made again because of them, and it is known how far it is. Without that transaction SQLite
begins anew with every commit of another process, and under load it never ends; VACUUM INTO holds
the same transaction four times as long. The write-ahead log grows by what is written meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from bullpen.core.backup.disk import create_file, fsync_path
from bullpen.core.backup.progress import ProgressCallback
from bullpen.core.errors import BackupFailed
from bullpen.core.store.sqlite import SqliteStore, translate_error

COPY_PAGES = 2000
"""Eight megabytes, in a few milliseconds."""


def copy_sqlite(store: SqliteStore, target: Path, tell: ProgressCallback) -> None:
    """Copy the database as it is now to a new file."""
    create_file(target).close()
    with closing(store.connect(query_only=True)) as source:
        try:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on
        except sqlite3.Error as error:
            raise translate_error(error, store.path) or error from error
        with translate_copy_errors(), closing(open_scratch_database(target)) as copy:
            source.backup(
                copy,
                pages=COPY_PAGES,
                progress=lambda _, rest, all_: tell("the database", all_ - rest, all_),
                sleep=0,
            )
    make_one_file(target)


@contextmanager
def translate_copy_errors() -> Iterator[None]:
    """What SQLite cannot write in this block, in words of ours."""
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise BackupFailed(
            f"the copy of the database cannot be written: {cause}",
            hint="Look whether the disk is full, or give another place.",
        ) from error


def open_scratch_database(path: Path) -> sqlite3.Connection:
    """A database that is thrown away if it is not finished: so nothing is waited for meanwhile."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def make_one_file(path: Path) -> None:
    """Leave no write-ahead log to it, and see to it that it is on the disk."""
    with (
        translate_copy_errors(),
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = DELETE")
    fsync_path(path)
