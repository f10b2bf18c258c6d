"""A worker process registers, listens, runs its loops and leaves nothing behind when it stops."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from bullpen.core import background
from bullpen.core.background import Loop, WorkerProcess, run_until_stopped
from bullpen.core.events.system import SchedulerStart, SchedulerStop
from bullpen.core.models import WORKERS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import events, rows
from tests.processor.working import eventually
from tests.stores import Stores

LONG, SOON = 300.0, 30.0


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened


def test_it_is_registered_from_its_making_to_its_stop(store: Store) -> None:
    process = WorkerProcess(store, "test", started=SchedulerStart, stopped=SchedulerStop)
    process.start()
    assert [(row["id"], row["kind"]) for row in rows(store, WORKERS)] == [(process.worker, "test")]
    process.stop()
    assert rows(store, WORKERS) == []
    assert [row["type"] for row in events(store)] == ["scheduler_start", "scheduler_stop"]


def test_a_commit_on_its_topic_wakes_a_loop(store: Store) -> None:
    steps = threading.Semaphore(0)

    def step() -> float:
        steps.release()
        return LONG

    process = WorkerProcess(store, "test")
    process.add(Loop("work", step), "schedules")
    process.start()
    try:
        assert steps.acquire(timeout=SOON)
        with store.write() as tx:
            tx.wake("schedules")
        assert steps.acquire(timeout=SOON)
    finally:
        process.stop()


def test_one_that_was_deleted_registers_again_under_another_id(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "LIVENESS_SECONDS", 0.02)
    process = WorkerProcess(store, "test")
    process.start()
    try:
        first = process.worker
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM workers")
        eventually(lambda: len(rows(store, WORKERS)) == 1, "it is back")
        assert rows(store, WORKERS)[0]["id"] != first
    finally:
        process.stop()
    assert rows(store, WORKERS) == []


def test_a_loop_that_takes_long_is_left_and_what_the_worker_holds_is_released(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    begun, end, released = threading.Event(), threading.Event(), []

    def hang() -> float:
        begun.set()
        end.wait(LONG)
        return LONG

    def release(tx: Transaction, worker: str) -> None:
        released.append(worker)

    process = WorkerProcess(store, "test")
    process.add(Loop("slow", hang))
    process.start()
    assert begun.wait(LONG)
    before = time.monotonic()
    with caplog.at_level(logging.WARNING):
        process.stop(0.2, release)
    end.set()
    assert time.monotonic() - before < LONG / 2
    assert released == [process.worker]
    assert "slow did not stop in time" in caplog.text
    assert rows(store, WORKERS) == []


def test_a_signal_that_comes_while_a_service_is_made_stops_it_once_it_runs() -> None:
    done: list[str] = []

    class Told:
        def __init__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        def start(self) -> None:
            done.append("start")

        def stop(self) -> None:
            done.append("stop")

    kept = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        run_until_stopped(Told)
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in kept.items():
            signal.signal(number, handler)
    assert done == ["start", "stop"]
