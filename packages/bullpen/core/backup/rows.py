"""Rows from one database to another of the same schema, whatever kind each is.

SQLite keeps what it is given, so it can hold any row of PostgreSQL's; on the way back only what is
true or false has to be told from numbers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect, literal, select, table

from bullpen.core.backup.progress import ProgressCallback
from bullpen.core.models.metadata import whole_schema
from bullpen.core.store.base import Store

if TYPE_CHECKING:
    import psycopg

BATCH_ROWS = 2000
REVISION_TABLE = "alembic_version"

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
    """Every table that is not SQLite's own."""
    return [name for (name,) in database.execute(LIST_TABLES)]


def count_rows(database: sqlite3.Connection) -> dict[str, int]:
    """How many rows each table has."""
    found = {}
    for name in table_names(database):
        counted = f"SELECT count(*) FROM {_quoted(name)}"  # noqa: S608 - quoted
        (found[name],) = database.execute(counted).fetchone()
    return found


def has_data(store: Store) -> bool:
    """Whether any table of ours has a row in it, whatever the schema's revision."""
    with store.engine.begin() as connection:
        present = set(inspect(connection).get_table_names()) & whole_schema().tables.keys()
        return any(
            connection.execute(select(literal(1)).select_from(table(name)).limit(1)).first()
            for name in sorted(present)
        )


def copy_rows_from_postgres(
    server: psycopg.Connection[Any], target: sqlite3.Connection, tell: ProgressCallback
) -> None:
    """Copy every row of the server that the tables of the target can have."""
    target.execute("BEGIN")
    names = [name for name in table_names(target) if name != REVISION_TABLE]
    for place, name in enumerate(names):
        tell(f"table {name}", place, len(names))
        columns = _columns(target, name)
        marks = ", ".join("?" * len(columns))
        into = f"INSERT INTO {_quoted(name)} ({_column_list(columns)}) VALUES ({marks})"  # noqa: S608
        with server.cursor(name=f"backup_{place}") as cursor:
            cursor.itersize = BATCH_ROWS
            cursor.execute(_select_all(name, columns).encode())
            while batch := cursor.fetchmany(BATCH_ROWS):
                target.executemany(into, batch)
    target.execute("COMMIT")


def copy_rows_to_postgres(
    source: sqlite3.Connection, server: psycopg.Connection[Any], tell: ProgressCallback
) -> None:
    """Copy every row into the empty tables of the server, and let their numbers go on."""
    names = [name for name in table_names(source) if name != REVISION_TABLE]
    for place, name in enumerate(names):
        tell(f"table {name}", place, len(names))
        columns = _columns(source, name)
        booleans = {each for (each,) in server.execute(LIST_BOOLEAN_COLUMNS, (name,))}
        at = [place for place, column in enumerate(columns) if column in booleans]
        into = f"COPY {_quoted(name)} ({_column_list(columns)}) FROM STDIN".encode()
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


def _columns(database: sqlite3.Connection, name: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({_quoted(name)})")]


def _column_list(columns: list[str]) -> str:
    return ", ".join(_quoted(each) for each in columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
