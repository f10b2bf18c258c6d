"""Moves what time moves, also while nobody claims: delays, deadlines, rate limits."""

from __future__ import annotations

from bullpen.core.maintenance.batches import in_batches
from bullpen.core.queue.due import make_due
from bullpen.core.store.base import Store


def deadlines(store: Store) -> str:
    """Make ready, expire, and let lanes go on."""
    return f"{in_batches(store, make_due)} moved"
