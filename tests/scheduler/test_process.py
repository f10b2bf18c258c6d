"""The scheduler: every system agent in its time, by one process, whoever is slow, fails or dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bullpen.core.clock import SECOND
from bullpen.core.maintenance import jobs
from bullpen.core.maintenance.jobs import JOB_LEASE_SECONDS, JOBS, MaintenanceJob
from bullpen.core.models import SYSTEM_AGENTS, WORKERS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.scheduler import main
from bullpen.scheduler.main import Scheduler
from tests.conformance.verbs import Row, events, rows
from tests.crash.children import LIMIT, until
from tests.crash.processors import Processors
from tests.stores import FakeClock, Stores

LONG = 300.0
"""A run that lasts."""


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened


@contextmanager
def scheduling(store: Store, *rota: MaintenanceJob) -> Iterator[Scheduler]:
    """A scheduler at work."""
    scheduler = Scheduler(store, rota)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()


def record(store: Store, name: str) -> Row:
    """What is recorded of a system agent."""
    (row,) = (row for row in rows(store, SYSTEM_AGENTS) if row["name"] == name)
    return row


def counting(count: dict[str, int], name: str) -> MaintenanceJob:
    """A loop that counts how often it ran, each second."""

    def run(_: Store) -> str:
        count[name] = count.get(name, 0) + 1
        return "counted"

    return MaintenanceJob(name, 1, run)


def test_it_enters_the_register_runs_every_loop_and_leaves_in_order(store: Store) -> None:
    scheduler = Scheduler(store)
    scheduler.start()
    (row,) = rows(store, WORKERS)
    assert (row["id"], row["kind"]) == (scheduler.worker, "scheduler")
    until(lambda: all(each["last_run_at"] for each in rows(store, SYSTEM_AGENTS)), "every loop ran")
    scheduler.stop()
    assert {row["name"] for row in rows(store, SYSTEM_AGENTS)} == {each.name for each in JOBS}
    assert [row["last_error"] for row in rows(store, SYSTEM_AGENTS)] == [None] * len(JOBS)
    assert rows(store, WORKERS) == []
    assert [row["type"] for row in events(store)] == ["scheduler_start", "scheduler_stop"]


@pytest.mark.one_store
def test_one_that_hangs_and_one_that_fails_delay_no_other(store: Store) -> None:
    count: dict[str, int] = {}
    let_go = threading.Event()

    def hang(_: Store) -> str:
        let_go.wait(LONG)
        return "at last"

    def fail(_: Store) -> str:
        raise ZeroDivisionError("by a mistake")

    began = time.monotonic()
    hanging, failing = MaintenanceJob("hanging", 1, hang), MaintenanceJob("failing", 1, fail)
    with scheduling(store, hanging, failing, counting(count, "well")):
        until(lambda: record(store, "hanging")["holder"] is not None, "it hangs")
        until(lambda: count.get("well", 0) >= 4, "it ran four times")
        until(lambda: record(store, "failing")["last_error"] is not None, "it failed")
        assert record(store, "hanging")["holder"] is not None
        assert "by a mistake" in str(record(store, "failing")["last_error"])
        # The pauses are of 2 s, 4 s, 8 s and so on.
        failures = int(str(record(store, "failing")["failures"]))
        assert 2**failures - 2 <= time.monotonic() - began + 1
        let_go.set()
    assert len(events(store, "system_agent_failed")) >= 1


def test_a_run_that_is_longer_than_its_lease_is_not_taken_by_another(
    stores: Stores, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is the test's, so that a machine that stands still ends no lease."""
    monkeypatch.setattr(main, "RENEW_LEASE_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "MAX_WAIT_SECONDS", 0.05)
    began, let_go, clock = [], threading.Event(), FakeClock()

    def run(_: Store) -> str:
        began.append(clock.now())
        let_go.wait(LONG)
        return "at last"

    agent = MaintenanceJob("long", 60, run)
    with (
        stores.opened(settings, clock) as store,
        stores.opened(settings, clock) as second,
        scheduling(store, agent),
        scheduling(second, agent),
    ):
        until(lambda: began != [], "one began")
        for _ in range(4):
            clock.advance((JOB_LEASE_SECONDS - 1) * SECOND)
            until(
                lambda: _leased_until(store) == clock.now() + JOB_LEASE_SECONDS * SECOND, "renewed"
            )
        let_go.set()
        until(lambda: record(store, "long")["last_result"] == "at last", "it ended")
    assert len(began) == 1


def _leased_until(store: Store) -> int:
    return int(str(record(store, "long")["lease_expires_at"]))


def test_a_stop_waits_for_no_run_that_lasts_and_leaves_its_turn_to_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "STOP_SECONDS", 0.5)
    let_go, runs = threading.Event(), []

    def hang(_: Store) -> str:
        runs.append(threading.current_thread())
        let_go.wait(LONG)
        return "too late"

    with scheduling(store, MaintenanceJob("hanging", 1, hang)):
        until(lambda: runs != [], "it hangs")
        before = time.monotonic()
    assert time.monotonic() - before < LONG / 2
    (row,) = rows(store, SYSTEM_AGENTS)
    assert (row["holder"], row["lease_expires_at"]) == (None, 0)
    let_go.set()
    runs[0].join(LIMIT)
    assert not runs[0].is_alive()
    assert rows(store, SYSTEM_AGENTS)[0]["last_result"] is None


@pytest.mark.one_store
def test_sigterm_ends_the_process_well_at_any_moment(settings: Settings, store: Store) -> None:
    for pause in (0.0, 0.3, 3.0):
        processors = Processors(settings)
        try:
            processors.schedule()
            if pause:
                until(lambda: rows(store, WORKERS) != [], "it is there")
            else:
                until(lambda: events(store) != [], "it begins")
            time.sleep(pause)
            processors.stop(ready=pause > 0)
        finally:
            processors.kill()
        assert rows(store, WORKERS) == []
        assert [row["holder"] for row in rows(store, SYSTEM_AGENTS) if row["holder"]] == []
