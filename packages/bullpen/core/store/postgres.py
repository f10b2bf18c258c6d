"""PostgreSQL: several hosts on one database."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import psycopg
from psycopg import errors as pg
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import PoolProxiedConnection

from bullpen.core.clock import Clock
from bullpen.core.errors import (
    CommitUnknown,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

CHANNEL = "bullpen"
"""What NOTIFY is sent on; the payload names the topics."""

_ERRORS: tuple[tuple[tuple[type[psycopg.Error], ...], type[StoreError], str], ...] = (
    ((pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable), StoreBusy, "locked"),
    ((pg.DiskFull,), StoreFull, "the server's disk is full"),
    ((pg.ReadOnlySqlTransaction,), StoreReadOnly, "the server is read-only"),
    ((pg.DataCorrupted, pg.IndexCorrupted), StoreCorrupt, "the database is damaged"),
    ((psycopg.OperationalError, pg.AdminShutdown), StoreUnavailable, "the server is away"),
    ((psycopg.InterfaceError,), StoreUnavailable, "the connection is closed"),
)


def translate(error: BaseException) -> StoreError | None:
    """The error in Bullpen's words, or None if it is a mistake of ours."""
    for kinds, ours, text in _ERRORS:
        if isinstance(error, kinds):
            return ours(f"{text}: {str(error).strip()}")
    return None


class PostgresStore(Store):
    """A PostgreSQL database."""

    dialect = "postgresql"

    def __init__(
        self, url: str, settings: Settings, clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        super().__init__(settings, clock, ids)
        self.url = make_url(url).set(drivername="postgresql+psycopg")
        # Ours begins and commits by itself; the caller's engine does as SQLAlchemy does.
        self._own = create_engine(self.url, isolation_level="AUTOCOMMIT", pool_size=8)
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine on the same database."""
        if self._engine is None:
            self._engine = create_engine(self.url, pool_size=2)
        return self._engine

    def write(self, *, durable: bool = True) -> Writing:
        """A transaction that writes. PostgreSQL's commits are always durable.

        Processors outlive their server here: a claim that a crash of the server undid would let
        two of them run one agent.
        """
        return Writing(self, "BEGIN")

    def read(self) -> Writing:
        """A transaction that only reads."""
        return Writing(self, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def close(self) -> None:
        """Close every connection."""
        self._own.dispose()
        if self._engine is not None:
            self._engine.dispose()

    def connection(self, opening: str) -> PoolProxiedConnection:
        """A connection in a new transaction; one that died while it was idle is replaced."""
        for last in (False, True):
            connection: PoolProxiedConnection | None = None
            try:
                connection = self._own.raw_connection()
                connection.driver_connection.execute(opening)  # type: ignore[union-attr]
            except (psycopg.Error, OperationalError) as error:
                if connection is not None:
                    connection.invalidate()
                self._own.dispose()
                if last:
                    cause = error.orig if isinstance(error, OperationalError) else error
                    raise translate(cause or error) or error from error
            else:
                return connection
        raise AssertionError("unreachable")

    def listener(self) -> psycopg.Connection[Any]:
        """A connection of its own that listens for wake-ups."""
        options = self.url.translate_connect_args(username="user", database="dbname")
        try:
            connection = psycopg.connect(**options, **self.url.query, autocommit=True)
            connection.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error as error:
            raise translate(error) or error from error
        return connection

    def _ring(self, topics: set[str]) -> None:
        with self.write() as tx:
            tx.topics |= topics


class Writing:
    """One transaction, as a context manager."""

    __slots__ = ("_connection", "_cursor", "_opening", "_store", "_tx")

    def __init__(self, store: PostgresStore, opening: str) -> None:
        self._store = store
        self._opening = opening

    def __enter__(self) -> Transaction:
        self._connection = self._store.connection(self._opening)
        self._cursor = self._connection.cursor()
        self._tx = self._store._transaction(self._cursor)
        return self._tx

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            error = self._commit()
            if error is None:
                self._connection.close()
                return
            told: StoreError | None = (
                CommitUnknown(f"the connection was lost while committing: {error}")
                if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
                and not isinstance(error, (pg.DeadlockDetected, pg.SerializationFailure))
                else translate(error)
            )
            self._abandon()
            raise told or error from error
        self._abandon()
        if isinstance(error, psycopg.Error):
            told = translate(error)
            if told is not None:
                raise told from error

    def _commit(self) -> psycopg.Error | None:
        try:
            if self._tx.topics:
                topics = " ".join(sorted(self._tx.topics))
                self._cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, topics))
            self._cursor.execute("COMMIT")
        except psycopg.Error as error:
            return error
        return None

    def _abandon(self) -> None:
        try:
            self._cursor.execute("ROLLBACK")
            self._connection.close()
        except psycopg.Error:
            self._connection.invalidate()
