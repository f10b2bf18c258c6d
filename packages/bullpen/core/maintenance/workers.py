"""Strikes processes out of the register that were not heard of."""

from __future__ import annotations

from bullpen.core.store.base import Store
from bullpen.core.workers import forget_silent


def workers(store: Store) -> str:
    """Forget the silent."""
    with store.write(durable=False) as tx:
        return f"{forget_silent(tx)} forgotten"
