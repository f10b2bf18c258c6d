"""PostgreSQL: a store for processes on several hosts."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from sqlalchemy import Connection, Engine, bindparam, create_engine, func, select, text
from sqlalchemy.engine import URL

from bullpen.core.clock import Clock
from bullpen.core.errors import CommitUnknown, StoreBusy, StoreError, StoreUnavailable
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.base import SELECT_REVISION, Store
from bullpen.core.store.permits import Permits
from bullpen.core.store.postgres_errors import translate_connect_error, translate_error
from bullpen.core.store.postgres_pipeline import PendingResult, PipelineConnection
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import (
    DeferredRow,
    Transaction,
    Values,
    make_page,
    make_row,
    make_rows,
)
from bullpen.core.wake.postgres import NOTIFY_CHANNEL, NotifyListener

MAX_IDLE_CONNECTIONS = 8
CHECK_AFTER_IDLE_SECONDS = 1.0
"""A connection that was idle for longer is checked before it is used."""

CONNECT_SECONDS = 5
KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A server whose host has failed is detected within half a minute."""
STATEMENT_SECONDS = 300
SERVER_CHECK_SECONDS = 3.0
"""How long the result of a check whether the server answers is used."""

WAITING_PER_LANE = 4
"""The maximum number of transactions of a process that wait for the lock of one lane."""
LANE_PATIENCE_SECONDS = 1.0
MAX_LANE_PERMITS = 4096
"""The number of lanes whose permits are kept; above it, unused permits are dropped."""
CONNECTION_PATIENCE_SECONDS = 5.0

BEGIN: Statement[None] = Statement(lambda: text("BEGIN"))
BEGIN_READ_ONLY: Statement[None] = Statement(
    lambda: text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
)
COMMIT: Statement[None] = Statement(lambda: text("COMMIT"))
NOTIFY: Statement[None] = Statement(
    lambda: select(func.pg_notify(bindparam("channel"), bindparam("topics")))
)

Row = TypeVar("Row")


class PostgresStore(Store):
    """A PostgreSQL database."""

    dialect = "postgresql"

    def __init__(
        self, url: URL, settings: Settings, clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        super().__init__(settings, clock, ids)
        self.url = url.set(drivername="postgresql+psycopg")
        self._engine: Engine | None = None
        self._idle: list[PipelineConnection] = []
        self._permits = Permits(settings.database_connections, CONNECTION_PATIENCE_SECONDS)
        self._lane_permits: dict[str, Permits] = {}
        self._check = threading.Lock()
        self._checked_at = -math.inf
        self._answered = True

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine on the same database."""
        if self._engine is None:
            self._engine = create_engine(self.url, pool_size=2, connect_args=self._parameters())
        return self._engine

    def write(self, *, durable: bool = True, since: float | None = None) -> PipelineContext:
        """A transaction that writes. PostgreSQL's commits are always durable.

        Processors outlive a crash of the server: if it undid a claim, two of them could run one
        agent.
        """
        return PipelineContext(self, BEGIN)

    def read(self) -> PipelineContext:
        """A transaction that only reads."""
        return PipelineContext(self, BEGIN_READ_ONLY)

    def close(self) -> None:
        """Close every connection."""
        self.forget()
        if self._engine is not None:
            self._engine.dispose()

    def listen(self) -> NotifyListener:
        """A listener for wake-ups."""
        return NotifyListener(self)

    def revision(self) -> str | None:
        """The schema's revision."""
        try:
            with self.read() as tx:
                row = tx.fetch(SELECT_REVISION)
        except pg.UndefinedTable:
            return None
        return None if row is None else str(row[0])

    def connect(self, **options: object) -> psycopg.Connection[Any]:
        """Open a connection; parameters of the URL take precedence over ours."""
        url = self.url.set(drivername="postgresql").render_as_string(hide_password=False)
        parameters: dict[str, Any] = {**self._parameters(), **options}
        try:
            return psycopg.connect(url, autocommit=True, client_encoding="utf8", **parameters)
        except psycopg.Error as error:
            raise translate_connect_error(error, self.url) or error from error

    def take(self) -> PipelineConnection:
        """Take a live connection and a permit for it; a connection lost while idle is replaced."""
        if not self._permits.acquire(self.settings.busy_seconds):
            count = self.settings.database_connections
            raise StoreBusy(f"all {count} connections of this process to the database are in use")
        try:
            return self._idle_connection() or PipelineConnection(
                self.connect(options=self._limits()), self.answers
            )
        except BaseException:
            self._permits.release()
            raise

    def put(self, pipe: PipelineConnection) -> None:
        """Return a connection."""
        if len(self._idle) < MAX_IDLE_CONNECTIONS:
            pipe.last_used = time.monotonic()
            self._idle.append(pipe)
        else:
            pipe.close()
        self._permits.release()

    def drop(self, pipe: PipelineConnection) -> None:
        """Close a connection that can no longer be used."""
        pipe.drop()
        self._permits.release()

    def lane_permits(self, lane: str) -> Permits:
        """The permits to wait for the lock of this lane."""
        permits = self._lane_permits.get(lane)
        if permits is None:
            if len(self._lane_permits) >= MAX_LANE_PERMITS:
                used = {name: each for name, each in [*self._lane_permits.items()] if each.used}
                self._lane_permits = used
            # Two threads at once get the same.
            new = Permits(WAITING_PER_LANE, LANE_PATIENCE_SECONDS)
            permits = self._lane_permits.setdefault(lane, new)
        return permits

    def answers(self) -> bool:
        """Whether the server answers a new connection, also if with an error."""
        with self._check:
            if time.monotonic() - self._checked_at > SERVER_CHECK_SECONDS:
                try:
                    self.connect().close()
                    self._answered = True
                except StoreError as error:
                    self._answered = not isinstance(error.__cause__, pg.ConnectionTimeout)
                self._checked_at = time.monotonic()
            return self._answered

    def _idle_connection(self) -> PipelineConnection | None:
        while self._idle:
            try:
                pipe = self._idle.pop()
            except IndexError:
                return None
            if time.monotonic() - pipe.last_used < CHECK_AFTER_IDLE_SECONDS or pipe.alive():
                return pipe
            pipe.drop()
            self.forget()
            if not self.answers():
                raise StoreUnavailable("PostgreSQL does not answer")
        return None

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of every connection, except those that the URL has."""
        parameters = {"connect_timeout": CONNECT_SECONDS, **KEEPALIVES}
        return {name: each for name, each in parameters.items() if name not in self.url.query}

    def _limits(self) -> str:
        """Return the server's limits as the parameter `options`; the URL's take precedence."""
        limits = {
            "lock_timeout": self.settings.busy_seconds,
            "statement_timeout": STATEMENT_SECONDS,
        }
        ours = [f"-c {name}={seconds * 1000}" for name, seconds in limits.items()]
        theirs = self.url.query.get("options", ())
        return " ".join([*ours, *([theirs] if isinstance(theirs, str) else theirs)])

    def forget(self) -> None:
        """Close the idle connections, because when one is lost, the others are too."""
        while self._idle:
            self._idle.pop().close()

    def _notify_on_commit(self, connection: Connection, topics: set[str]) -> None:
        # PostgreSQL sends it with the commit, and drops it with a rollback.
        if connection.in_transaction():
            connection.execute(select(func.pg_notify(NOTIFY_CHANNEL, " ".join(sorted(topics)))))


class PipelineTransaction(Transaction):
    """Sends statements through a pipeline, and waits for results when they are needed."""

    def __init__(self, store: PostgresStore, pipe: PipelineConnection) -> None:
        now = store.clock.now()
        super().__init__(store.dialect, now, store.ids, store.settings, store.chance)
        self._store = store
        self._pipe = pipe
        self._permits: dict[object, Permits] = {}

    def write(self, statement: Statement[Any], values: Values) -> None:
        """Send the statement."""
        self._send(statement, values)

    def write_each(self, statement: Statement[Any], values: Sequence[Values]) -> None:
        """Send the statement once for each of these values."""
        for each in values:
            self._send(statement, each)

    def change(self, statement: Statement[Any], values: Values) -> int:
        """Wait for the number of rows."""
        return self._count(self._send(statement, values))

    def change_each(self, statement: Statement[Any], values: Sequence[Values]) -> list[int]:
        """Send all, then wait for all."""
        replies = [self._send(statement, each) for each in values]
        return [self._count(reply) for reply in reversed(replies)][::-1]

    def one(self, statement: Statement[Row], values: Values) -> Row | None:
        """Wait for the first row."""
        return self._first(statement, self._send(statement, values))

    def one_each(self, statement: Statement[Row], values: Sequence[Values]) -> list[Row | None]:
        """Send all, then wait for all."""
        replies = [self._send(statement, each) for each in values]
        return [self._first(statement, reply) for reply in reversed(replies)][::-1]

    def one_deferred(self, statement: Statement[Row], values: Values) -> DeferredRow[Row]:
        """Send the statement; the result waits for its first row."""
        reply = self._send(statement, values)
        return lambda: self._first(statement, reply)

    def all(self, statement: Statement[Row], values: Values) -> list[Row]:
        """Wait for all rows."""
        return make_rows(statement, self._pipe.rows(self._send(statement, values)))

    def page(self, statement: Statement[Row], values: Values) -> list[Row]:
        """Wait for rows, one by one, as many as `page_bytes` allows."""
        reply = self._pipe.send(statement, values)
        with closing(self._pipe.rows_one_by_one(reply)) as rows:
            return make_page(statement, rows, self.page_bytes)

    def fetch(self, sql: str) -> tuple[object, ...] | None:
        """Wait for the first row."""
        row: tuple[object, ...] | None = self._pipe.row(self._pipe.say(sql))
        return row

    def _first(self, statement: Statement[Row], reply: PendingResult) -> Row | None:
        row = self._pipe.row(reply)
        return row if row is None else make_row(statement, row)

    def _count(self, reply: PendingResult) -> int:
        return self._pipe.wait(reply).command_tuples or 0

    def release_permits(self, *, in_vain: bool) -> None:
        """Return the permits to wait for lanes; `in_vain` means that it got no lock."""
        for permits in self._permits.values():
            permits.release(in_vain=in_vain)

    def _send(self, statement: Statement[Any], values: Values) -> PendingResult:
        if statement.waits_for is not None:
            self._permit_to_wait(values[statement.waits_for])
        return self._pipe.send(statement, values)

    def _permit_to_wait(self, lane: object) -> None:
        """Refuse to wait for a lane behind other transactions of this process that are stuck."""
        if lane in self._permits:
            return
        permits = self._store.lane_permits(str(lane))
        if not permits.acquire(self._store.settings.busy_seconds):
            raise StoreBusy(f"the lane of {lane} is locked")
        self._permits[lane] = permits


class PipelineContext:
    """One transaction, as a context manager."""

    __slots__ = ("_opening", "_pipe", "_store", "_tx")

    def __init__(self, store: PostgresStore, opening: Statement[None]) -> None:
        self._store = store
        self._opening = opening

    def __enter__(self) -> Transaction:
        self._pipe = self._store.take()
        self._tx = PipelineTransaction(self._store, self._pipe)
        try:
            self._pipe.send(self._opening, {})
        except psycopg.Error as error:
            self._rollback()
            raise translate_error(error) or error from error
        return self._tx

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end(error)
        finally:
            self._tx.release_permits(in_vain=isinstance(error, pg.LockNotAvailable))

    def _end(self, error: BaseException | None) -> None:
        if error is not None:
            if not isinstance(error, Exception):
                # It may have interrupted a request before its result.
                self._store.drop(self._pipe)
                return
            self._rollback()
            translated = translate_error(error)
            if translated is not None:
                raise translated from error
            return
        try:
            self._commit()
        except psycopg.Error as failed:
            self._rollback()
            translated = translate_error(failed)
            if isinstance(translated, StoreUnavailable):
                raise CommitUnknown(
                    f"lost the connection to PostgreSQL during COMMIT: {failed}"
                ) from failed
            raise translated or failed from failed
        self._store.put(self._pipe)

    def _commit(self) -> None:
        pipe = self._pipe
        pipe.send(COMMIT, {})
        if self._tx.topics:
            # After the commit: a transaction that notifies locks the server's only queue of
            # notifications until it is on disk, and so blocks all others that notify.
            values = {"channel": NOTIFY_CHANNEL, "topics": " ".join(sorted(self._tx.topics))}
            pipe.send(NOTIFY, values, hint=True)
        pipe.wait(pipe.mark())

    def _rollback(self) -> None:
        try:
            self._pipe.rollback()
        except psycopg.Error:
            self._store.drop(self._pipe)
            self._store.forget()
        else:
            self._store.put(self._pipe)
