"""Moves what time moves, also while nobody claims: delays, deadlines, rate limits."""

from __future__ import annotations

from bullpen.core.maintenance.batches import in_batches
from bullpen.core.queue.due import run_timers
from bullpen.core.store.base import Store


def run_all_timers(store: Store) -> str:
    """Make ready, expire, and let lanes go on."""
    return f"{in_batches(store, run_timers)} moved"
