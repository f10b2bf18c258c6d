"""Large work in small transactions."""

from __future__ import annotations

from collections.abc import Callable

from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction

MOST = 1000
"""Batches in one run of a loop; what is left is for the next."""


def in_batches(store: Store, step: Callable[[Transaction], int]) -> int:
    """Repeat the step, each time in a transaction of its own, until it finds nothing."""
    total = 0
    for _ in range(MOST):
        with store.write(durable=False) as tx:
            count = step(tx)
        total += count
        if count == 0:
            break
    return total
