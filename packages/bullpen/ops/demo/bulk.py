"""Bulk writing: many rows at once, past the verbs of the queue; here into SQLite."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore, translate_error
from bullpen.ops.demo.rows import LaneRow, Rows

LANE_COLUMNS = tuple(name for name in LaneRow._fields if name != "agent")
BUSY_MS = 10_000
CACHE_KIB = 32 * 1024


class BulkWriter(ABC):
    """Writes the rows of a history."""

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Insert these rows, and update the lanes, in one transaction."""

    @abstractmethod
    def finish(self) -> None:
        """Prepare the store for the first process that uses it."""

    @abstractmethod
    def clear(self, tables: Sequence[str]) -> None:
        """Delete all rows of these tables."""


@contextmanager
def bulk_writer(store: Store) -> Iterator[BulkWriter]:
    """A writer with a connection of its own."""
    if not isinstance(store, SqliteStore):
        from bullpen.ops.demo.write_postgres import postgres_writer  # it loads the driver

        with postgres_writer(store) as writer:
            yield writer
        return
    with closing(store.connect()) as connection:
        try:
            yield _SqliteWriter(connection)
        except sqlite3.Error as error:
            raise translate_error(error, store.path) or error from error


class _SqliteWriter(BulkWriter):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # Commits do not wait for the disk: an unfinished history is worth nothing.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    def write(self, rows: Rows) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for name, each in rows.tables().items():
                if each:
                    connection.executemany(_insert(name, each[0]), each)
            connection.executemany(_UPDATE_LANE, [(*each[1:], each.agent) for each in rows.lanes])
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def finish(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def clear(self, tables: Sequence[str]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        for name in tables:
            connection.execute(f"DELETE FROM {name}")  # noqa: S608 - a table of ours
        connection.execute("DELETE FROM sqlite_sequence")
        connection.execute("COMMIT")
        connection.execute("PRAGMA incremental_vacuum")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


_SET_LANE = ", ".join(f"{each} = ?" for each in LANE_COLUMNS)
_UPDATE_LANE = f"UPDATE lanes SET {_SET_LANE} WHERE agent = ?"  # noqa: S608 - our columns


def _insert(table: str, row: NamedTuple) -> str:
    marks = ", ".join("?" * len(row))
    return f"INSERT INTO {table} ({', '.join(row._fields)}) VALUES ({marks})"  # noqa: S608 - ours
