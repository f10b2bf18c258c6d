"""Takes back what dead processors had claimed."""

from __future__ import annotations

from bullpen.core.queue.reap import expire_leases
from bullpen.core.store.base import Store


def recover_expired_claims(store: Store) -> str:
    """Reap the expired leases."""
    with store.write(durable=False) as tx:
        return f"{expire_leases(tx)} claims taken back"
