"""What keeps the store in order survives the death of whoever does it."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from dataclasses import replace

import pytest

from bullpen.core.clock import MINUTE, SystemClock
from bullpen.core.errors import StaleToken
from bullpen.core.maintenance.jobs import JOBS, MaintenanceJob
from bullpen.core.queue.claim import claim, extend
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.children import Children
from tests.crash.recovery import take_back
from tests.crash.work import Order, Task
from tests.maintenance.election import enter_rota, run_due
from tests.stores import FakeClock


def die_in_turn(settings: Settings, now: int, name: str) -> None:
    """Take the turn of this loop and die in it."""
    store = open_store(settings, clock=FakeClock(now))
    enter_rota(store)
    (agent,) = (each for each in JOBS if each.name == name)
    run_due(store, "victim", (replace(agent, run=_die),))


def _die(store: Store) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL does not return")


@pytest.mark.parametrize("name", ["leases", "archive"])
def test_a_loop_whose_process_died_in_its_turn_runs_again_in_time(
    settings: Settings, children: Children, name: str
) -> None:
    """A message that kills its processor does so at the moment at which `leases` frees it."""
    now = SystemClock().now()
    assert children.run(die_in_turn, settings, now, name) == -signal.SIGKILL
    with closing(open_store(settings, clock=FakeClock(now + MINUTE))) as store:
        assert name in run_due(store, "healthy")


def test_of_two_processes_that_saw_a_loop_due_one_takes_the_turn(settings: Settings) -> None:
    clock = FakeClock(SystemClock().now())
    took: list[str] = []
    with (
        closing(open_store(settings, clock=clock)) as first,
        closing(open_store(settings, clock=clock)) as second,
    ):
        enter_rota(first)

        def look(_: Store) -> str:
            # It looked at the same time, so that it asks only now.
            took.extend(run_due(second, "second", (MaintenanceJob("leases", 5, _idle),)))
            return ""

        assert run_due(first, "first", (MaintenanceJob("leases", 5, look),)) == ["leases"]
    assert took == []


def test_a_run_that_was_taken_back_is_told_so_when_it_renews(settings: Settings) -> None:
    clock = FakeClock(SystemClock().now())
    with closing(open_store(settings, clock=clock)) as store:
        with store.write() as tx:
            enqueue(tx, Task("renew", 1, Order.ANSWER).to("alpha"))
        with store.write() as tx:
            claimed = claim(tx, "victim")
        assert claimed is not None
        clock.advance(MINUTE)
        assert take_back(store) == 1
        with pytest.raises(StaleToken), store.write() as tx:
            extend(tx, claimed.token)


def _idle(_: Store) -> str:
    return ""
