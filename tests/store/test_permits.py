"""Permits: first come first served, and nobody waits behind those who stand still."""

from __future__ import annotations

import threading
import time

from bullpen.core.store.permits import Permits
from tests.processor.working import eventually

LONG = 60.0


def test_so_many_at_once_and_the_next_in_the_order_in_which_they_came() -> None:
    permits = Permits(2, patience=LONG)
    assert permits.acquire(LONG)
    assert permits.acquire(LONG)
    order: list[int] = []

    def work(number: int) -> None:
        assert permits.acquire(LONG)
        order.append(number)
        permits.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for count, thread in enumerate(threads, 1):
        thread.start()
        eventually(lambda count=count: len(permits._waiting) == count, "it waits")  # type: ignore[misc]
    assert order == []
    permits.release()
    for thread in threads:
        thread.join(LONG)
    assert order == [0, 1, 2, 3, 4]


def test_who_waits_behind_those_who_stand_still_is_refused_and_later_ones_at_once() -> None:
    permits = Permits(1, patience=0.2)
    assert permits.acquire(LONG)
    began = time.monotonic()
    assert not permits.acquire(LONG)
    assert time.monotonic() - began >= 0.15
    assert not permits.acquire(LONG)
    permits.release()
    assert permits.acquire(LONG)


def test_nobody_waits_longer_than_asked() -> None:
    permits = Permits(1, patience=LONG)
    assert permits.acquire(LONG)
    assert not permits.acquire(0.05)
    permits.release()
    assert permits.acquire(0.05)
