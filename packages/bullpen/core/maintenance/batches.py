"""Large work in small transactions."""

from __future__ import annotations

import time
from collections.abc import Callable

from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

MAX_BATCHES = 1000
"""Batches in one run of a loop; what is left is for the next."""

PAUSE_FACTOR = 9.0
"""So many times as long as a batch took is the pause after it, if the work can wait."""
MAX_PAUSE_SECONDS = 1.0


def in_batches(store: Store, step: Callable[[Transaction], int], rest: float = 0.0) -> int:
    """Repeat the step, each time in a transaction of its own, until it finds nothing.

    Where others write as well, a batch takes longer, and so does the pause.
    """
    total = 0
    for _ in range(MAX_BATCHES):
        began = time.monotonic()
        with store.write(durable=False) as tx:
            count = step(tx)
        total += count
        if count == 0:
            break
        time.sleep(min(rest * (time.monotonic() - began), MAX_PAUSE_SECONDS))
    return total
