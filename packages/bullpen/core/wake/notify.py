"""Wake-ups on PostgreSQL: NOTIFY, sent by the process that has committed."""

from __future__ import annotations

import atexit
import os
import select
import threading
import time
from typing import TYPE_CHECKING

import psycopg

from bullpen.core.errors import StoreUnavailable
from bullpen.core.wake.listener import ANYTHING

if TYPE_CHECKING:
    from bullpen.core.store.postgres import PostgresStore

NOTIFY = "SELECT pg_notify(%s, %s)"
CHANNEL = "bullpen"
"""What NOTIFY is sent on; the payload names the topics."""


class Notifier:
    """Notifies from a connection of its own, once for all that was committed meanwhile.

    A transaction that notifies locks the server's whole queue of notifications until its commit is
    on the disk: in the transactions that do the work it would make them commit one by one.
    """

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._topics: set[str] = set()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def ring(self, topics: set[str]) -> None:
        """Wake whoever listens for these topics, soon; never waits and never fails."""
        with self._changed:
            self._topics |= topics
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="notify", daemon=True)
                self._thread.start()
                # A process that ends without closing its store still sends its last hint.
                atexit.register(self.close)
            self._changed.notify()

    def close(self) -> None:
        """Send what is left, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            atexit.unregister(self.close)
        self._closing = False

    def _run(self) -> None:
        connection: psycopg.Connection[tuple[object, ...]] | None = None
        while topics := self._take():
            try:
                if connection is None:
                    connection = self._store.connect()
                    connection.execute("SET synchronous_commit = off")
                connection.execute(NOTIFY, (CHANNEL, " ".join(sorted(topics))))
            except (psycopg.Error, StoreUnavailable):
                # Lost: those who wait look by themselves.
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _take(self) -> set[str]:
        with self._changed:
            while not self._topics and not self._closing:
                self._changed.wait()
            topics, self._topics = self._topics, set()
            return topics


class NotifyListener:
    """A connection that listens. When it is lost, a new one, and everything is looked at."""

    address: str | None = None

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._poll = store.settings.poll_seconds
        self._reader, self._writer = os.pipe()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._connect()

    def wait(self, timeout: float) -> frozenset[str]:
        """Wait for notifications; after the poll's time, everything is worth a look."""
        try:
            connection = self._connection or self._connect()
            notes = list(connection.notifies(timeout=0))
            if not notes:
                pause = min(timeout, self._poll)
                ready, _, _ = select.select([connection.fileno(), self._reader], [], [], pause)
                if not ready:
                    return ANYTHING if self._poll <= timeout else frozenset()
                if self._reader in ready:
                    os.read(self._reader, 4096)
                notes = list(connection.notifies(timeout=0))
            return frozenset(topic for note in notes for topic in note.payload.split())
        except (psycopg.Error, StoreUnavailable):
            self._forget()
            time.sleep(min(timeout, self._poll))
            return ANYTHING

    def interrupt(self) -> None:
        """Write to the pipe that the wait also watches."""
        os.write(self._writer, b".")

    def close(self) -> None:
        """Hang up."""
        self._forget()
        os.close(self._reader)
        os.close(self._writer)

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = self._store.connect()
        connection.execute(f"LISTEN {CHANNEL}")
        self._connection = connection
        return connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
