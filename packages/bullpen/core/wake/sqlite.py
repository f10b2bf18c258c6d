"""Wake-ups on SQLite: a datagram to each registered worker after the commit."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from sqlalchemy import Connection, Engine, bindparam, event
from sqlalchemy import select as query

from bullpen.core.errors import StoreError
from bullpen.core.models import WORKERS
from bullpen.core.network import socket_directory
from bullpen.core.store.statement import Statement
from bullpen.core.wake.listener import ALL_TOPICS

if TYPE_CHECKING:
    from bullpen.core.store.sqlite import SqliteStore

PENDING_TOPICS = "bullpen_asked"


class CommitNotifier:
    """Sends wake-ups when a caller's own transaction is committed."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._engines: WeakSet[Engine] = WeakSet()

    def notify_on_commit(self, connection: Connection, topics: set[str]) -> None:
        """Wake these topics if this connection's transaction is committed."""
        if connection.engine not in self._engines:
            self._engines.add(connection.engine)
            event.listen(connection.engine, "commit", self._commit)
            event.listen(connection.engine, "rollback", _discard_pending)
        connection.info.setdefault(PENDING_TOPICS, set()).update(topics)

    def _commit(self, connection: Connection) -> None:
        topics = connection.info.pop(PENDING_TOPICS, None)
        driver = connection.connection.driver_connection
        if topics and driver is not None:
            # SQLAlchemy's event comes before the commit, and there is none after it: so commit
            # here, and SQLAlchemy's own commit has nothing to do.
            driver.commit()
            self._notifier.notify(topics)


def _discard_pending(connection: Connection) -> None:
    connection.info.pop(PENDING_TOPICS, None)


REFRESH_SECONDS = 0.5
"""How old the list of workers may be; a new worker polls until it is in the list."""

LIST_ADDRESSES: Statement[tuple[str]] = Statement(
    lambda: query(WORKERS.c.wake).where(
        WORKERS.c.host == bindparam("host"), WORKERS.c.wake.is_not(None)
    )
)


class Notifier:
    """Sends wake-ups to workers. It never waits and never fails: a worker that misses one polls."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._host = socket.gethostname()
        self._socket: socket.socket | None = None
        self._addresses: tuple[str, ...] = ()
        self._read_at = -REFRESH_SECONDS
        self._lock = threading.Lock()

    def notify(self, topics: set[str]) -> None:
        """Wake every worker on this machine with these topics."""
        now = time.monotonic()
        if now - self._read_at >= REFRESH_SECONDS:
            self._refresh(now)
        if not self._addresses:
            return
        sender = self._socket or self._open()
        packet = " ".join(topics).encode()
        for address in self._addresses:
            try:
                sender.sendto(packet, address)
            except OSError:
                # A full socket's worker is awake; a missing socket's worker has ended.
                continue

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self) -> socket.socket:
        """The socket; several threads may ask for the first time at once."""
        with self._lock:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            return self._socket

    def _refresh(self, now: float) -> None:
        with self._lock:
            self._read_at = now
            try:
                with self._store.read() as tx:
                    rows = tx.all(LIST_ADDRESSES, {"host": self._host})
            except StoreError:
                return
            self._addresses = tuple(address for (address,) in rows)


class DatagramListener:
    """A Unix socket, and a slow poll of `PRAGMA data_version`, which misses no commit."""

    def __init__(self, store: SqliteStore) -> None:
        name = f"wake-{os.getpid()}-{os.urandom(4).hex()}.sock"
        self.address: str | None = str(socket_directory(store.settings) / name)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self.address)
        Path(self.address).chmod(0o600)
        self._poll = store.settings.poll_seconds
        self._connection = store.connect(query_only=True)
        self._version = self._data_version()
        self._next_poll_at = time.monotonic() + self._poll

    def wait(self, timeout: float) -> frozenset[str]:
        """Wait for datagrams; check the version whenever the poll interval has passed.

        Also while datagrams arrive: they do not replace one that was lost.
        """
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            if now >= self._next_poll_at:
                self._next_poll_at = now + self._poll
                version = self._data_version()
                if version != self._version:
                    self._version = version
                    return ALL_TOPICS
            pause = min(deadline, self._next_poll_at) - now
            ready, _, _ = select.select([self._socket], [], [], max(0.0, pause))
            if ready:
                return self._drain()
            if time.monotonic() >= deadline:
                return frozenset()

    def interrupt(self) -> None:
        """End a wait, by a datagram to itself."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto(b"interrupt", str(self.address))

    def close(self) -> None:
        """Close and remove the socket."""
        self._socket.close()
        self._connection.close()
        Path(str(self.address)).unlink(missing_ok=True)

    def _drain(self) -> frozenset[str]:
        topics: set[str] = set()
        while True:
            try:
                topics.update(self._socket.recv(4096).decode().split())
            except BlockingIOError:
                return frozenset(topics)

    def _data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
