"""Two transactions at once: one is open while the other begins, and waits if it must."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


def beside(
    store: Store, tx: Transaction, other: Callable[..., object], *given: object
) -> threading.Thread:
    """Begin the other while this transaction is open; give it back when it waits or is done.

    On SQLite it waits before it has read anything.
    """
    tx.fetch("SELECT 1")  # whatever this one has written is with the server
    thread = threading.Thread(target=other, args=given)
    thread.start()
    while store.dialect == "postgresql" and thread.is_alive():
        with store.read() as watching:
            row = watching.fetch(WAITING)
        if row is not None and row[0]:
            break
    return thread
