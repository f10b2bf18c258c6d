"""The hub."""

from __future__ import annotations

from bullpen.core.store.base import Store


class Hub:
    """Placeholder until the hub is there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self) -> None:
        """Begin."""

    def wake(self) -> None:
        """There may be new events."""

    def stop(self) -> None:
        """End every stream."""
