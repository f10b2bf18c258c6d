"""Takes back what dead processors had claimed."""

from __future__ import annotations

from bullpen.core.queue.reap import reap
from bullpen.core.store.base import Store


def leases(store: Store) -> str:
    """Reap the expired leases."""
    with store.write(durable=False) as tx:
        return f"{reap(tx)} claims taken back"
