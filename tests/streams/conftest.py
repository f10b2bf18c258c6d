"""A hub over each store, which is told of every commit at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.api.streams.hub import Hub
from bullpen.core.access.owner import OwnerToken
from bullpen.core.background import register_worker
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import WakeupDispatcher
from tests.streams.listening import KEEP_ALIVE_SECONDS, Audience


@pytest.fixture
def hub(store: Store) -> Iterator[Hub]:
    """The hub, at work."""
    listener = store.listen()
    with store.write() as tx:
        register_worker(tx, "api", listener.address)
    made, ear = (
        Hub(store, OwnerToken(store.settings), keep_alive=KEEP_ALIVE_SECONDS),
        WakeupDispatcher(listener),
    )
    ear.subscribe("events", made.wake)
    made.start()
    ear.start()
    yield made
    made.stop()
    ear.stop()


@pytest.fixture
def audience() -> Iterator[Audience]:
    """Whoever follows a hub."""
    made = Audience()
    yield made
    made.close()
