"""What a healthy installation does after a crash, with time that passes at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import MINUTE, SystemClock
from bullpen.core.maintenance.recovery import end_stale_deliveries
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.account import wait_for_backends
from tests.crash.work import Platform, deliver_all, work_off
from tests.stores import FakeClock


@contextmanager
def later(settings: Settings, minutes: int = 10, *, alone: bool = True) -> Iterator[Store]:
    """The store as it is opened so much later: every lease and back-off is over.

    With `alone`, after the server has noticed that all others are dead.
    """
    store = open_store(settings, clock=FakeClock(SystemClock().now() + minutes * MINUTE))
    try:
        if alone:
            wait_for_backends(store)
        yield store
    finally:
        store.close()


def take_back(store: Store) -> int:
    """Take back what the dead had claimed; gives how many claims it was."""
    with store.write(durable=False) as tx:
        return expire_leases(tx)


def run_to_the_end(store: Store, platform: Platform) -> None:
    """Take back, answer and deliver, until nothing is left to do."""
    take_back(store)
    work_off(store)
    end_stale_deliveries(store)
    deliver_all(store, platform)
