"""Wake-ups on PostgreSQL: one NOTIFY right after each commit that has topics."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

import psycopg

from bullpen.core.errors import StoreUnavailable
from bullpen.core.wake.listener import ALL_TOPICS

if TYPE_CHECKING:
    from bullpen.core.store.postgres import PostgresStore

NOTIFY_CHANNEL = "bullpen"
"""The channel of NOTIFY; the payload names the topics."""


class NotifyListener:
    """A connection that listens. After it was lost, a new one wakes all topics."""

    address: str | None = None

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._poll = store.settings.poll_seconds
        self._reader, self._writer = os.pipe()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._connect()

    def wait(self, timeout: float) -> frozenset[str]:
        """Wait for notifications; after the poll interval, all topics are woken."""
        try:
            connection = self._connection or self._connect()
            notes = list(connection.notifies(timeout=0))
            if not notes:
                pause = min(timeout, self._poll)
                ready = self._ready(connection, pause)
                if not ready:
                    return ALL_TOPICS if self._poll <= timeout else frozenset()
                if self._reader in ready:
                    os.read(self._reader, 4096)
                notes = list(connection.notifies(timeout=0))
            return frozenset(topic for note in notes for topic in note.payload.split())
        except (psycopg.Error, StoreUnavailable):
            self._forget()
            time.sleep(min(timeout, self._poll))
            return ALL_TOPICS

    def interrupt(self) -> None:
        """End a wait, by a pipe that it watches too."""
        os.write(self._writer, b".")

    def close(self) -> None:
        """Close the connection."""
        self._forget()
        os.close(self._reader)
        os.close(self._writer)

    def _ready(self, connection: psycopg.Connection[tuple[object, ...]], pause: float) -> list[int]:
        # Not select(), which refuses file numbers over 1024: a process may have thousands open.
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        poll.register(self._reader, select.POLLIN)
        return [number for number, _ in poll.poll(pause * 1000)]

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = self._store.connect()
        connection.execute(f"LISTEN {NOTIFY_CHANNEL}")
        self._connection = connection
        return connection

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
