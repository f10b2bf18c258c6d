"""Write a history into an empty store: in bulk, past the verbs of the queue, and all or nothing."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bullpen.core.company import add_agent
from bullpen.core.errors import InTheWay
from bullpen.core.models import whole_schema
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.sqlite import SqliteStore, translate_error
from bullpen.ops.demo.company import AGENTS, TEAMS
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.rows import COLUMNS, LaneRow, Rows
from bullpen.ops.demo.simulation import Simulation

if TYPE_CHECKING:
    import psycopg

INSTALLATION_TABLES = frozenset({"store_identity", "system_agents", "workers"})
"""Tables whose rows are no data of an owner: they are kept."""

NEW_HOME_HINT = (
    "Use a new home: BULLPEN_HOME=~/bullpen-history bullpen demo history. With PostgreSQL, use a"
    " new database."
)

BUSY_MS = 10_000
CACHE_KIB = 32 * 1024

LANE_COLUMNS = LaneRow._fields[1:]

Progress = Callable[[int], object]
"""Told the time up to which the history is written."""


@dataclass(frozen=True, slots=True)
class WrittenHistory:
    """What was written: the plan, and the number of rows by table."""

    plan: HistoryPlan
    rows: Mapping[str, int]


def write_history(settings: Settings, plan: HistoryPlan, progress: Progress) -> WrittenHistory:
    """Write the history of this plan; the store is empty again if that fails or is interrupted."""
    with closing(open_store(settings, clock=_ClockAt(plan.since))) as store:
        check_empty(store)
        try:
            _add_company(store)
            counts = _write_rows(store, plan, progress)
        except BaseException:
            _clear(store)
            raise
    return WrittenHistory(plan, counts)


def check_empty(store: Store) -> None:
    """Refuse a store with anything of an owner in it."""
    with store.read() as tx:
        filled = [name for name in _tables() if tx.fetch(f"SELECT 1 FROM {name} LIMIT 1")]  # noqa: S608 - ours
    if filled:
        shown = ", ".join(filled[:4]) + (" and others" if len(filled) > 4 else "")
        raise InTheWay(f"the store is not empty: it has rows in {shown}", hint=NEW_HOME_HINT)


def _clear(store: Store) -> None:
    """Delete every row except those of the installation."""
    with _bulk_writer(store) as writer:
        writer.clear(_tables())


def _tables() -> list[str]:
    return sorted(whole_schema().tables.keys() - INSTALLATION_TABLES)


def _add_company(store: Store) -> None:
    """Add the agents and teams. The provider is echo: nothing that is pending costs anything."""
    with store.write() as tx:
        for each in AGENTS:
            add_agent(tx, Agent(id=each.id, name=each.name, model=each.model.name))
        for team in TEAMS:
            add_team(
                tx, Team(id=team.id, name=team.name, leader=team.members[0], members=team.members)
            )


def _write_rows(store: Store, plan: HistoryPlan, progress: Progress) -> Mapping[str, int]:
    simulation = Simulation(plan)
    counts: Counter[str] = Counter()
    with _bulk_writer(store) as writer:
        for rows in simulation.run():
            writer.write(rows)
            counts.update({name: len(each) for name, each in rows.tables.items()})
            progress(simulation.now)
        writer.finish()
    return counts


class _ClockAt:
    """A clock that always tells the same time."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        """The time of all that is written."""
        return self._now

    def monotonic(self) -> int:
        """No time passes."""
        return 0


class _BulkWriter(ABC):
    """Writes the rows of a history over a connection of its own."""

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
def _bulk_writer(store: Store) -> Iterator[_BulkWriter]:
    if isinstance(store, SqliteStore):
        with closing(store.connect()) as connection:
            try:
                yield _SqliteWriter(connection)
            except sqlite3.Error as error:
                raise translate_error(error, store.path) or error from error
        return
    # The driver is loaded only where it is used.
    import psycopg

    from bullpen.core.store import postgres_errors
    from bullpen.core.store.postgres import PostgresStore

    assert isinstance(store, PostgresStore)
    with closing(store.connect()) as connection:
        try:
            yield _PostgresWriter(connection)
        except psycopg.Error as error:
            raise postgres_errors.translate_error(error) or error from error


class _SqliteWriter(_BulkWriter):
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
            for name, each in rows.tables.items():
                columns = COLUMNS[name]
                marks = ", ".join("?" * len(columns))
                insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - ours
                connection.executemany(insert, each)
            connection.executemany(_update_lane("?"), _lane_values(rows))
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
        # `execute` runs one step of this pragma, which frees one page.
        connection.executescript("PRAGMA incremental_vacuum")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class _PostgresWriter(_BulkWriter):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    # Statements are bytes: psycopg's types accept text only if it is literal.

    def write(self, rows: Rows) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for name, each in rows.tables.items():
                if each:
                    into = f"COPY {name} ({', '.join(COLUMNS[name])}) FROM STDIN"
                    with cursor.copy(into.encode()) as copy:
                        for row in each:
                            copy.write_row(row)
            cursor.executemany(_update_lane("%s").encode(), _lane_values(rows))

    def finish(self) -> None:
        # The sequences of rows that came with their ids are behind.
        for name in (name for name, columns in COLUMNS.items() if "id" in columns):
            if not name.endswith("_archive"):
                advance = (
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name}"  # noqa: S608 - ours
                    " HAVING max(id) > 0"
                )
                self._connection.execute(advance.encode())
        self._connection.execute("ANALYZE")

    def clear(self, tables: Sequence[str]) -> None:
        self._connection.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY".encode())


def _update_lane(mark: str) -> str:
    values = ", ".join(f"{each} = {mark}" for each in LANE_COLUMNS)
    return f"UPDATE lanes SET {values} WHERE agent = {mark}"  # noqa: S608 - our columns


def _lane_values(rows: Rows) -> list[tuple[object, ...]]:
    return [(*each[1:], each.agent) for each in rows.lanes]
