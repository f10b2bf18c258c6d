"""A consistent copy of the database: SQLite's online backup, or the rows of PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect, literal, select, table
from sqlalchemy.exc import DBAPIError

from bullpen.core.errors import BackupFailed, StoreUnavailable
from bullpen.core.files import PRIVATE_FILE_MODE, fsync_path
from bullpen.core.models import whole_schema
from bullpen.core.settings import Settings
from bullpen.core.store import migrate
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore, translate_error
from bullpen.ops.backup.contents import ProgressCallback

if TYPE_CHECKING:
    import psycopg

    from bullpen.core.store.postgres import PostgresStore

BATCH_ROWS = 2000
REVISION_TABLE = "alembic_version"
IDENTITY_TABLE = "store_identity"
COPY_PAGES = 2000
"""Eight megabytes, in a few milliseconds."""

LIST_TABLES = (
    "SELECT name FROM sqlite_master"
    " WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
)
LIST_BOOLEAN_COLUMNS = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND table_name = %s AND data_type = 'boolean'"
)
FIND_SEQUENCE = "SELECT pg_get_serial_sequence(%s, 'id')"


def table_names(database: sqlite3.Connection) -> list[str]:
    """List every table except SQLite's own."""
    return [name for (name,) in database.execute(LIST_TABLES)]


def count_rows(database: sqlite3.Connection) -> dict[str, int]:
    """Return the number of rows of each table."""
    found = {}
    for name in table_names(database):
        counted = f"SELECT count(*) FROM {_quoted(name)}"  # noqa: S608 - quoted
        (found[name],) = database.execute(counted).fetchone()
    return found


def has_data(store: Store) -> bool:
    """Whether any of Bullpen's tables has a row, at any revision of the schema.

    The identity of the store does not count: a new database has one.
    """
    with store.engine.begin() as connection:
        present = set(inspect(connection).get_table_names()) & whole_schema().tables.keys()
        present.discard(IDENTITY_TABLE)
        return any(
            connection.execute(select(literal(1)).select_from(table(name)).limit(1)).first()
            for name in sorted(present)
        )


def copy_rows_from_postgres(
    server: psycopg.Connection[Any], target: sqlite3.Connection, tell: ProgressCallback
) -> None:
    """Copy the rows of PostgreSQL into an SQLite database, which can store any value."""
    target.execute("BEGIN")
    names = [name for name in table_names(target) if name != REVISION_TABLE]
    for place, name in enumerate(names):
        tell(f"copying table {name}", place, len(names))
        columns = _columns(target, name)
        marks = ", ".join("?" * len(columns))
        into = f"INSERT INTO {_quoted(name)} ({_column_list(columns)}) VALUES ({marks})"  # noqa: S608
        # The migrations write rows too: the identity of a new store.
        target.execute(_delete_all(name))
        with server.cursor(name=f"backup_{place}") as cursor:
            cursor.itersize = BATCH_ROWS
            cursor.execute(_select_all(name, columns).encode())
            while batch := cursor.fetchmany(BATCH_ROWS):
                target.executemany(into, batch)
    target.execute("COMMIT")


def copy_rows_to_postgres(
    source: sqlite3.Connection, server: psycopg.Connection[Any], tell: ProgressCallback
) -> None:
    """Copy the rows of an SQLite database into the server's empty tables; advance the sequences."""
    names = [name for name in table_names(source) if name != REVISION_TABLE]
    for place, name in enumerate(names):
        tell(f"copying table {name}", place, len(names))
        columns = _columns(source, name)
        booleans = {each for (each,) in server.execute(LIST_BOOLEAN_COLUMNS, (name,))}
        at = [place for place, column in enumerate(columns) if column in booleans]
        into = f"COPY {_quoted(name)} ({_column_list(columns)}) FROM STDIN".encode()
        server.execute(_delete_all(name).encode())
        with server.cursor() as cursor:
            with cursor.copy(into) as copy:
                for row in _rows(source, name, columns):
                    copy.write_row(_with_booleans(row, at))
            _advance_sequence(cursor, name, columns)


def _rows(
    source: sqlite3.Connection, name: str, columns: list[str]
) -> Iterator[tuple[object, ...]]:
    found = source.execute(_select_all(name, columns))
    while batch := list(islice(found, BATCH_ROWS)):
        yield from batch


def _with_booleans(row: tuple[object, ...], at: list[int]) -> list[object]:
    values = list(row)
    for place in at:
        values[place] = None if values[place] is None else bool(values[place])
    return values


def _advance_sequence(cursor: psycopg.Cursor[Any], name: str, columns: list[str]) -> None:
    if "id" not in columns:
        return
    cursor.execute(FIND_SEQUENCE, (name,))
    found = cursor.fetchone()
    if found is not None and found[0] is not None:
        last = f"SELECT setval(%s, max(id)) FROM {_quoted(name)} HAVING max(id) > 0"  # noqa: S608
        cursor.execute(last.encode(), (found[0],))


def _select_all(name: str, columns: list[str]) -> str:
    return f"SELECT {_column_list(columns)} FROM {_quoted(name)}"  # noqa: S608 - quoted, both


def _delete_all(name: str) -> str:
    return f"DELETE FROM {_quoted(name)}"  # noqa: S608 - quoted


def _columns(database: sqlite3.Connection, name: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(name)})")]


def _column_list(columns: list[str]) -> str:
    return ", ".join(_quoted(each) for each in columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def copy_sqlite(store: SqliteStore, target: Path, tell: ProgressCallback) -> None:
    """Copy a snapshot of the database to a new file, while other processes write to it."""
    # The read transaction around the online backup keeps SQLite from restarting the copy at each
    # commit of another process, which would never end under load. VACUUM INTO takes four times as
    # long and reports no progress. The write-ahead log grows during the copy.
    target.touch(PRIVATE_FILE_MODE, exist_ok=False)
    with closing(store.connect(query_only=True)) as source:
        try:
            source.execute("BEGIN")
            # The transaction begins with the first read.
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise translate_error(error, store.path) or error from error
        with translate_copy_errors(), closing(open_scratch_database(target)) as copy:
            source.backup(
                copy,
                pages=COPY_PAGES,
                progress=lambda _, rest, all_: tell("copying the database", all_ - rest, all_),
                sleep=0,
            )
    make_one_file(target)


@contextmanager
def translate_copy_errors() -> Iterator[None]:
    """Raise an error of SQLite in this block as BackupFailed."""
    try:
        yield
    except (sqlite3.Error, DBAPIError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise BackupFailed(
            f"cannot write the copy of the database: {cause}",
            hint="Check that the disk has free space, or give another directory.",
        ) from error


def open_scratch_database(path: Path) -> sqlite3.Connection:
    """Open a database without durability, for a copy that is deleted unless it is completed."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def make_one_file(path: Path) -> None:
    """Leave the write-ahead mode, and write the file to the disk."""
    with (
        translate_copy_errors(),
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = DELETE")
    fsync_path(path)


def copy_postgres(
    store: PostgresStore, target: Path, revision: str, tell: ProgressCallback
) -> None:
    """Copy a snapshot of Bullpen's tables to a new SQLite file with the same schema.

    So backups of both databases are the same, can be restored to either, and need no pg_dump of the
    right version.
    """
    import psycopg

    from bullpen.core.store.postgres_errors import translate_error

    target.touch(PRIVATE_FILE_MODE, exist_ok=False)
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
            copy_rows_from_postgres(server, copy, tell)
        except psycopg.Error as error:
            raise translate_error(error) or error from error
    make_one_file(target)


def _make_tables(target: Path, revision: str, settings: Settings) -> None:
    """Make the empty tables of a revision."""
    try:
        with translate_copy_errors(), closing(SqliteStore(target, settings)) as empty:
            migrate.upgrade(empty, revision)
    except StoreUnavailable as error:  # an error of the copy, as the server is not used yet
        raise BackupFailed(f"cannot write the copy of the database: {error}") from error
    make_one_file(target)
    target.with_name(f"{target.name}-turn").unlink(missing_ok=True)
