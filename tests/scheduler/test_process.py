"""The scheduler: every system agent in its time, by one process, whoever is slow, fails or dies."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bullpen.core.maintenance.rota import ROTA
from bullpen.core.maintenance.system_agent import SystemAgent
from bullpen.core.maintenance.turn import TURN_SECONDS
from bullpen.core.models import SYSTEM_AGENTS, WORKERS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.scheduler.process import STOP_SECONDS, Scheduler
from tests.conformance.verbs import events, rows
from tests.crash.children import Child, append, brood, lines, orphaned, until
from tests.crash.processors import Processors
from tests.stores import Stores


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened


@contextmanager
def scheduling(store: Store, *rota: SystemAgent) -> Iterator[Scheduler]:
    """A scheduler at work."""
    scheduler = Scheduler(store, rota)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()


def counting(count: dict[str, int], name: str) -> SystemAgent:
    """A loop that counts how often it ran, each second."""

    def run(_: Store) -> str:
        count[name] = count.get(name, 0) + 1
        return "counted"

    return SystemAgent(name, 1, run)


def test_it_enters_the_register_runs_every_loop_and_leaves_in_order(store: Store) -> None:
    scheduler = Scheduler(store)
    scheduler.start()
    (row,) = rows(store, WORKERS)
    assert (row["id"], row["kind"]) == (scheduler.worker, "scheduler")
    until(lambda: all(each["last_run_at"] for each in rows(store, SYSTEM_AGENTS)), "every loop ran")
    scheduler.stop()
    assert {row["name"] for row in rows(store, SYSTEM_AGENTS)} == {each.name for each in ROTA}
    assert [row["last_error"] for row in rows(store, SYSTEM_AGENTS)] == [None] * len(ROTA)
    assert rows(store, WORKERS) == []
    assert [row["type"] for row in events(store)] == ["scheduler_start", "scheduler_stop"]


def test_one_that_hangs_and_one_that_fails_delay_no_other(store: Store) -> None:
    count: dict[str, int] = {}
    let_go = threading.Event()

    def hang(_: Store) -> str:
        let_go.wait(60)
        return "at last"

    def fail(_: Store) -> str:
        raise ZeroDivisionError("by a mistake")

    hanging, failing = SystemAgent("hanging", 1, hang), SystemAgent("failing", 1, fail)
    with scheduling(store, hanging, failing, counting(count, "well")):
        until(lambda: count.get("well", 0) >= 4, "it ran four times")
        found = {row["name"]: row for row in rows(store, SYSTEM_AGENTS)}
        assert found["hanging"]["holder"] is not None
        assert "by a mistake" in str(found["failing"]["last_error"])
        assert 1 <= int(str(found["failing"]["failures"])) <= 3
        let_go.set()
    assert len(events(store, "system_agent_failed")) >= 1


def test_a_run_that_is_longer_than_its_lease_is_not_taken_by_another(
    stores: Stores, store: Store
) -> None:
    began: list[float] = []

    def run(_: Store) -> str:
        began.append(time.monotonic())
        time.sleep(TURN_SECONDS + 3)
        return "at last"

    agent = SystemAgent("long", 60, run)
    with (
        stores.opened(store.settings) as second,
        scheduling(store, agent),
        scheduling(second, agent),
    ):
        until(
            lambda: [row["last_result"] for row in rows(store, SYSTEM_AGENTS)] == ["at last"],
            "it ended",
        )
    assert len(began) == 1


def test_a_stop_waits_for_no_run_that_lasts_and_leaves_its_turn_to_others(store: Store) -> None:
    let_go, begun = threading.Event(), threading.Event()

    def hang(_: Store) -> str:
        begun.set()
        let_go.wait(60)
        return "too late"

    with scheduling(store, SystemAgent("hanging", 1, hang)):
        assert begun.wait(30)
        before = time.monotonic()
    assert time.monotonic() - before < STOP_SECONDS + 5
    (row,) = rows(store, SYSTEM_AGENTS)
    assert (row["holder"], row["lease_expires_at"]) == (None, 0)
    let_go.set()
    time.sleep(0.5)
    assert rows(store, SYSTEM_AGENTS)[0]["last_result"] is None


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
            processors.stop()
        finally:
            processors.kill()
        assert rows(store, WORKERS) == []
        assert [row["holder"] for row in rows(store, SYSTEM_AGENTS) if row["holder"]] == []


PROBES = {"quick": 0.1, "slow": 1.0, "long": TURN_SECONDS + 2.0}


def schedule(settings: Settings, log: Path) -> None:
    """Be a scheduler whose system agents say when they begin and end."""

    def probe(name: str, seconds: float) -> Callable[[Store], str]:
        def run(_: Store) -> str:
            append(log, f"begin {name} {os.getpid()}")
            time.sleep(seconds)
            append(log, f"end {name} {os.getpid()}")
            return "probed"

        return run

    rota = tuple(SystemAgent(name, 1, probe(name, seconds)) for name, seconds in PROBES.items())
    with closing(open_store(settings)) as store:
        scheduler = Scheduler(store, rota)
        scheduler.start()
        while not orphaned():
            time.sleep(0.1)


def check(log: Path) -> dict[str, int]:
    """Nobody began what another was doing; gives how often each was done to the end."""
    at_work: dict[str, str] = {}
    done = dict.fromkeys(PROBES, 0)
    for line in lines(log):
        what, name, pid = line.split()
        if what == "killed":
            at_work = {each: who for each, who in at_work.items() if who != pid}
        elif what == "begin":
            assert name not in at_work, f"{pid} began {name} while {at_work[name]} was at it"
            at_work[name] = pid
        else:
            assert at_work.pop(name, None) == pid, line
            done[name] += 1
    return done


@pytest.mark.slow
def test_three_schedulers_run_each_loop_one_at_a_time_while_they_are_killed(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    log, chance = tmp_path / "log", random.Random(5)
    with brood(tmp_path / "errors") as children:
        all_: list[Child] = [children.start(schedule, settings, log) for _ in range(3)]
        for _ in range(6):
            time.sleep(chance.uniform(1.0, 3.0))
            victim = all_.pop(chance.randrange(3))
            victim.kill()
            append(log, f"killed - {victim.pid}")
            all_.append(children.start(schedule, settings, log))
        before = check(log)
        until(
            lambda: all(check(log)[name] > before[name] for name in PROBES),
            "each is done again",
            4 * TURN_SECONDS + 30,
        )
        children.check()
    assert all(count >= 1 for count in check(log).values())
    assert check(log)["quick"] >= 5
