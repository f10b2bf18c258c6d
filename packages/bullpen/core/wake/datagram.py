"""Wake-ups on one machine: a datagram to the Unix socket of every registered worker."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select

from bullpen.core.errors import StoreError
from bullpen.core.models import WORKERS
from bullpen.core.store.statement import Statement

if TYPE_CHECKING:
    from bullpen.core.store.sqlite import SqliteStore

REFRESH_SECONDS = 0.5
"""How old the list of workers may be; a newcomer polls until it is known."""

ADDRESSES: Statement[tuple[str]] = Statement(
    select(WORKERS.c.wake).where(WORKERS.c.host == bindparam("host"), WORKERS.c.wake.is_not(None))
)


class Bell:
    """Sends hints. It never waits and never fails: whoever misses one polls."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._host = socket.gethostname()
        self._socket: socket.socket | None = None
        self._addresses: tuple[str, ...] = ()
        self._read_at = -REFRESH_SECONDS
        self._lock = threading.Lock()

    def ring(self, topics: set[str]) -> None:
        """Wake every worker on this machine with these topics."""
        now = time.monotonic()
        if now - self._read_at >= REFRESH_SECONDS:
            self._refresh(now)
        if not self._addresses:
            return
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        packet = " ".join(topics).encode()
        for address in self._addresses:
            try:
                self._socket.sendto(packet, address)
            except OSError:
                # A full socket belongs to somebody awake; a missing one to somebody gone.
                continue

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _refresh(self, now: float) -> None:
        with self._lock:
            self._read_at = now
            try:
                with self._store.read() as tx:
                    rows = tx.all(ADDRESSES, {"host": self._host})
            except StoreError:
                return
            self._addresses = tuple(address for (address,) in rows)
