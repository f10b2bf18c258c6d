"""The floor: what Bullpen executes, recorded, and played back through bare sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, zip_longest
from time import perf_counter
from typing import Any
from unittest import mock

from bullpen.core.settings import Settings
from bullpen.core.store.sqlite import SqliteStore
from tests.bench.laps import Bullpen, Lap, seconds
from tests.bench.stores import sqlite_file

Call = tuple[str, Any, bool, bool]
"""The text, the values, whether they are many, and whether rows come back."""
Recording = list[list[Sequence[Call]]]
"""The calls of each phase of each lap."""
Part = tuple[int, int]
"""So many laps with so many messages each."""


class RecordingCursor(sqlite3.Cursor):
    """Executes, and keeps what it executed."""

    def __init__(self, connection: sqlite3.Connection, calls: list[Call]) -> None:
        super().__init__(connection)
        self._calls = calls

    def execute(self, sql: str, values: Any = ()) -> RecordingCursor:  # noqa: ANN401 - sqlite3's
        """Execute once."""
        kept = dict(values) if isinstance(values, dict) else tuple(values)
        super().execute(sql, values)
        self._calls.append((sql, kept, False, self.description is not None))
        return self

    def executemany(self, sql: str, values: Iterable[Any]) -> RecordingCursor:
        """Execute with each of the values."""
        kept = [dict(each) if isinstance(each, dict) else tuple(each) for each in values]
        super().executemany(sql, kept)
        self._calls.append((sql, kept, True, False))
        return self


class RecordingConnection(sqlite3.Connection):
    """Makes recording cursors, for `execute` of its own too."""

    calls: list[Call]

    def cursor(self, factory: Any = None) -> Any:  # noqa: ANN401 - sqlite3's own signature
        """A recording cursor, whatever was asked for."""
        return RecordingCursor(self, self.calls)


class RecordedStore(SqliteStore):
    """A store whose writer is recorded."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(sqlite_file(settings), settings)
        self.calls: list[Call] = []

    def connect(self, *, query_only: bool = False) -> sqlite3.Connection:
        """A recorded connection, unless it only reads."""
        if query_only:
            return super().connect(query_only=True)
        RecordingConnection.calls = self.calls
        recording = partial(sqlite3.connect, factory=RecordingConnection)
        with mock.patch.object(sqlite3, "connect", recording):
            return super().connect()


def record(settings: Settings, parts: Iterable[Part]) -> Recording:
    """Let Bullpen go these laps on this database, and write down what it executes."""
    store = RecordedStore(settings)
    bullpen = Bullpen(store)
    recording: Recording = []
    with store._lock:
        store.writer()
    store.calls.clear()
    for count, size in parts:
        for _ in range(count):
            marks = bullpen.marks(size, lambda: len(store.calls))
            recording.append([tuple(store.calls[start:end]) for start, end in pairwise(marks)])
            store.calls.clear()
    bullpen.close()
    return recording


class Floor:
    """The recording as a contender, on a copy of the database that it was made from."""

    name = "floor"

    def __init__(self, settings: Settings, recording: Recording) -> None:
        # The store's own connection is a bare one, and has the settings that Bullpen works with.
        self._store = SqliteStore(sqlite_file(settings), settings)
        self._connection = self._store.connect()
        self._cursor = self._connection.cursor()
        self._laps = iter(recording)

    def laps(self, count: int, size: int) -> list[Lap]:
        """Play back the next laps; they must be those of this size."""
        return [self._lap(next(self._laps)) for _ in range(count)]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._store.close()

    def _lap(self, phases: list[Sequence[Call]]) -> Lap:
        cursor = self._cursor
        execute, executemany, fetchall = cursor.execute, cursor.executemany, cursor.fetchall
        marks = [perf_counter()]
        for calls in phases:
            for sql, values, many, rows in calls:
                if many:
                    executemany(sql, values)
                else:
                    execute(sql, values)
                    if rows:
                        fetchall()
            marks.append(perf_counter())
        return seconds(marks)


def same(one: Settings, other: Settings) -> bool:
    """Whether two databases hold the same rows in the same tables."""
    return all(left == right for left, right in zip_longest(_rows(one), _rows(other)))


def _rows(settings: Settings) -> Iterator[tuple[object, ...]]:
    connection = sqlite3.connect(sqlite_file(settings))
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    for (name,) in tables.fetchall():
        for row in connection.execute(f'SELECT * FROM "{name}" ORDER BY 1'):
            yield (name, *row)
    connection.close()
