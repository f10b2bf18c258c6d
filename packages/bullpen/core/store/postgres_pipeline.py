"""A PostgreSQL connection that is always in libpq's pipeline mode.

Statements whose results are not needed at once travel with the next one whose result is: a
transaction of ten statements takes two or three round trips. It calls libpq itself, because
psycopg's cursors look for results after every statement, which costs more than the statement.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

from bullpen.core.store.statement import Statement

_FAILED_STATUSES = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)

_LOADERS: dict[int, Callable[[bytes], object]] = {
    16: lambda value: value == b"t",  # bool
    20: int,  # int8
    21: int,  # int2
    23: int,  # int4
    26: int,  # oid
    700: float,  # float4
    701: float,  # float8
    1700: lambda value: Decimal(value.decode()),  # numeric
}
"""By PostgreSQL's type id; all other types are text."""

_DUMPERS: dict[type, Callable[[Any], bytes | None]] = {
    type(None): lambda _: None,
    bool: lambda value: b"t" if value else b"f",
    str: str.encode,
    int: lambda value: b"%d" % value,
    float: lambda value: repr(value).encode(),
}


SILENCE_SECONDS = 3.0
"""The time without an answer after which a new connection checks the server."""
MAX_SILENCE_SECONDS = 600.0
"""The longest wait for a server that answers new connections; its own limits are shorter."""


class PendingResult:
    """The result of one request; `result` is None until it was received."""

    __slots__ = ("hint", "prepares", "result")

    def __init__(self, *, prepares: bytes | None = None, hint: bool = False) -> None:
        self.prepares = prepares
        self.hint = hint
        self.result: PGresult | None = None


class PipelineConnection:
    """Sends requests and receives their results, both in order."""

    def __init__(
        self, connection: psycopg.Connection[Any], server_answers: Callable[[], bool]
    ) -> None:
        self.last_used = time.monotonic()
        self._server_answers = server_answers
        self._is_silent = False
        self._connection = connection
        self._pg = connection.pgconn
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        self._poll = select.poll()
        self._poll.register(self._pg.socket)
        self._expected: deque[PendingResult] = deque()
        self._prepared: set[bytes] = set()

    def send(
        self, statement: Statement[Any], values: Mapping[str, object], *, hint: bool = False
    ) -> PendingResult:
        """Send a statement, and prepare it when this connection first sends it.

        The error of a `hint` is ignored.
        """
        name, sql, keys = statement.prepared
        # First, since a value that cannot be encoded must not leave a request half sent.
        dumped = [_DUMPERS[type(value := values[key])](value) for key in keys]
        if name not in self._prepared:
            self._prepared.add(name)
            self._expected.append(PendingResult(prepares=name))
            self._pg.send_prepare(name, sql)
        reply = PendingResult(hint=hint)
        self._expected.append(reply)
        self._pg.send_query_prepared(name, dumped)
        return reply

    def say(self, sql: str) -> PendingResult:
        """Send an SQL text."""
        reply = PendingResult()
        self._expected.append(reply)
        self._pg.send_query_params(sql.encode(), None)
        return reply

    def mark(self) -> PendingResult:
        """Send a sync: after an error the server skips all requests before it."""
        reply = PendingResult()
        self._expected.append(reply)
        self._pg.pipeline_sync()
        return reply

    def wait(self, reply: PendingResult) -> PGresult:
        """Wait for a reply; an error of any request before it is raised here."""
        if reply.result is None:
            self._pg.send_flush_request()
            while reply.result is None:
                self._receive(quiet=False)
        return reply.result

    def rows(self, reply: PendingResult) -> list[Any]:
        """Wait for the rows of a reply."""
        return _rows(self.wait(reply), None)

    def rows_one_by_one(self, reply: PendingResult) -> Generator[Any, None, None]:
        """Wait for each row; when closed early, receive the rest without keeping it."""
        self._pg.send_flush_request()
        while self._expected[0] is not reply:
            self._receive(quiet=False)
        self._pg.set_single_row_mode()
        result = self._next()
        loaders = _loaders(result)
        try:
            while result.status == ExecStatus.SINGLE_TUPLE:
                yield _row(result, 0, loaders)
                result = self._next()
        finally:
            while result.status == ExecStatus.SINGLE_TUPLE:
                result = self._next()
            self._finish(result, quiet=False)

    def row(self, reply: PendingResult) -> Any:  # noqa: ANN401 - the statement knows its row
        """Wait for the first row of a reply."""
        rows = _rows(self.wait(reply), 1)
        return rows[0] if rows else None

    def rollback(self) -> None:
        """Roll back what was begun, and receive all outstanding results."""
        if self._is_silent:
            raise psycopg.OperationalError("the server no longer answers")
        self.mark()
        self.say("ROLLBACK")
        self.mark()
        self._receive_all()

    def alive(self) -> bool:
        """Whether the server answers."""
        try:
            reply = self.say("SELECT 1")
            self.mark()
            self.wait(reply)
            self._receive_all()
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Close the connection after the server has answered everything."""
        with suppress(psycopg.Error):
            self._receive_all()
        self.drop()

    def drop(self) -> None:
        """Close the connection at once; the server rolls back."""
        self._connection.close()

    def _receive_all(self) -> None:
        while self._expected:
            self._receive(quiet=True)

    def _receive(self, *, quiet: bool) -> None:
        """Receive the next result."""
        self._finish(self._next(), quiet=quiet)

    def _finish(self, result: PGresult, *, quiet: bool) -> None:
        """Take the last part of the next result."""
        reply = self._expected.popleft()
        reply.result = result
        status = result.status
        if status == ExecStatus.PIPELINE_SYNC:
            return
        # Every other result is followed by a None.
        if self._pg.is_busy():
            self._await_input()
        end = self._pg.get_result()
        assert end is None
        if status in _FAILED_STATUSES:
            if reply.prepares is not None:
                self._prepared.discard(reply.prepares)
            if not (quiet or reply.hint):
                raise error_from_result(result)

    def _next(self) -> PGresult:
        pg = self._pg
        if pg.is_busy():
            self._await_input()
        result = pg.get_result()
        if result is None or pg.status == ConnStatus.BAD:
            raise psycopg.OperationalError(pg.get_error_message())
        return result

    def _await_input(self) -> None:
        pg = self._pg
        unsent = pg.flush()
        silent = 0.0
        while pg.is_busy():
            self._poll.modify(pg.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            if not self._poll.poll(SILENCE_SECONDS * 1000):
                silent += SILENCE_SECONDS
                self._check_server(silent)
                continue
            pg.consume_input()
            unsent = unsent and pg.flush()

    def _check_server(self, silent: float) -> None:
        """Stop waiting for a server that answers no new connection either."""
        if self._is_silent or silent > MAX_SILENCE_SECONDS or not self._server_answers():
            self._is_silent = True
            raise psycopg.OperationalError("the server no longer answers")


def _rows(result: PGresult, limit: int | None) -> list[Any]:
    loaders = _loaders(result)
    count = result.ntuples if limit is None else min(limit, result.ntuples)
    return [_row(result, row, loaders) for row in range(count)]


def _loaders(result: PGresult) -> list[Callable[[bytes], object]]:
    return [_LOADERS.get(result.ftype(at), bytes.decode) for at in range(result.nfields)]


def _row(result: PGresult, row: int, loaders: list[Callable[[bytes], object]]) -> Any:  # noqa: ANN401
    value = result.get_value
    return tuple(
        [
            None if (raw := value(row, column)) is None else load(raw)
            for column, load in enumerate(loaders)
        ]
    )
