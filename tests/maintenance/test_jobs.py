"""The rota: each loop in its time, by one process at a time; one that fails stops no other."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy.exc import SQLAlchemyError

from bullpen.core.clock import DAY, HOUR, SECOND
from bullpen.core.errors import StoreBusy
from bullpen.core.maintenance import jobs
from bullpen.core.maintenance.jobs import (
    JOB_LEASE_SECONDS,
    JOBS,
    MaintenanceJob,
    release_job_leases,
    renew_job_leases,
    run_job_if_due,
)
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.store.base import Store
from tests.conformance.verbs import Row, do, events, rows
from tests.maintenance.election import enter_rota, run_due
from tests.stores import FakeClock

EVERY = 10


class Killed(BaseException):
    pass


def agent(run: Callable[[Store], str], name: str = "probe") -> MaintenanceJob:
    """A loop that does this."""
    return MaintenanceJob(name, EVERY, run)


def record(store: Store, name: str = "probe") -> Row:
    """What is recorded of a loop."""
    (row,) = (row for row in rows(store, SYSTEM_AGENTS) if row["name"] == name)
    return row


def test_every_loop_runs_at_once_on_a_new_database_and_says_what_it_did(store: Store) -> None:
    enter_rota(store)
    names = [each.name for each in JOBS]
    assert run_due(store, "processor_1") == names
    assert sorted(row["name"] for row in rows(store, SYSTEM_AGENTS)) == sorted(names)
    for row in rows(store, SYSTEM_AGENTS):
        assert row["last_error"] is None, row
        assert row["last_result"]
        assert row["holder"] is None


def test_every_loop_runs_at_its_own_pace(store: Store, clock: FakeClock) -> None:
    enter_rota(store)
    run_due(store, "processor_1")
    ran = {each.name: 0 for each in JOBS}
    for _ in range(60):
        clock.advance(SECOND)
        for name in run_due(store, "processor_1"):
            ran[name] += 1
    assert ran == {each.name: 60 // each.every_seconds for each in JOBS}


def test_entering_twice_keeps_what_is_recorded(store: Store) -> None:
    rota = (agent(lambda _: "did it"),)
    enter_rota(store, rota)
    run_due(store, "a", rota)
    before = record(store)
    enter_rota(store, rota)
    assert record(store) == before


def test_a_loop_runs_again_when_its_time_has_come_and_not_before(
    store: Store, clock: FakeClock
) -> None:
    rota = (agent(lambda _: "did it"),)
    enter_rota(store, rota)
    assert run_due(store, "a", rota) == ["probe"]
    clock.advance(EVERY * SECOND - 1)
    assert run_due(store, "b", rota) == []
    clock.advance(1)
    assert run_due(store, "b", rota) == ["probe"]


def test_when_it_ran_how_long_and_what_it_did_is_recorded(store: Store, clock: FakeClock) -> None:
    def run(_: Store) -> str:
        clock.advance(1234)
        return "3 things"

    rota = (agent(run),)
    enter_rota(store, rota)
    began = clock.now()
    run_due(store, "a", rota)
    row = record(store)
    assert (row["last_run_at"], row["last_duration"]) == (began, 1234)
    assert (row["last_result"], row["last_error"]) == ("3 things", None)
    assert row["next_run_at"] == clock.now() + EVERY * SECOND


def test_while_one_process_runs_a_loop_another_does_not(store: Store) -> None:
    others: list[str] = []

    def run(store: Store) -> str:
        assert record(store)["holder"] == "a"
        others.extend(run_due(store, "b", rota))
        return "did it"

    rota = (agent(run),)
    enter_rota(store, rota)
    assert run_due(store, "a", rota) == ["probe"]
    assert others == []


def test_a_loop_that_another_took_after_the_look_is_left_to_him(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[str] = []

    def run(store: Store) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "_seconds_until_due", lambda *_: 0.0)  # he looked a moment ago
            others.extend(run_due(store, "b", (agent(lambda _: "twice"),)))
        return "did it"

    rota = (agent(run),)
    enter_rota(store, rota)
    assert run_due(store, "a", rota) == ["probe"]
    assert others == []
    assert record(store)["last_result"] == "did it"


def test_of_many_that_ask_at_the_same_moment_one_runs(store: Store) -> None:
    runs: list[int] = []

    def run(_: Store) -> str:
        runs.append(1)
        time.sleep(0.3)  # all the others have looked, and ask
        return "did it"

    rota = (agent(run),)
    enter_rota(store, rota)
    together = threading.Barrier(5)

    def ask(worker: str) -> None:
        together.wait(30)
        run_due(store, worker, rota)

    threads = [threading.Thread(target=ask, args=(f"w{number}",)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(runs) == 1


@pytest.mark.parametrize(
    "error",
    [
        StoreBusy("locked"),
        OSError("disk"),
        SQLAlchemyError("sql"),
        ValueError("a mistake of ours"),
        KeyError("another"),
        sqlite3.OperationalError("database table is locked"),
        psycopg.errors.UndefinedTable("no such table"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_loop_that_fails_says_so_backs_off_and_stops_no_other(
    store: Store, clock: FakeClock, error: Exception
) -> None:
    def fail(_: Store) -> str:
        raise error

    rota = (agent(fail), agent(lambda _: "did it", "other"))
    enter_rota(store, rota)
    assert run_due(store, "a", rota) == ["probe", "other"]
    row = record(store)
    assert str(error) in row["last_error"]
    assert (row["last_result"], row["holder"]) == (None, None)
    assert record(store, "other")["last_result"] == "did it"
    pause = 2 * EVERY * SECOND
    clock.advance(pause - 1)
    assert run_due(store, "a", rota) == ["other"]
    clock.advance(1)
    assert "probe" in run_due(store, "a", rota)


def test_a_loop_that_works_again_clears_its_error(store: Store, clock: FakeClock) -> None:
    broken = [True]

    def run(_: Store) -> str:
        if broken.pop():
            raise OSError("disk")
        return "did it"

    rota = (agent(run),)
    enter_rota(store, rota)
    run_due(store, "a", rota)
    assert record(store)["failures"] == 1
    broken.append(False)
    clock.advance(2 * EVERY * SECOND)
    run_due(store, "a", rota)
    assert (record(store)["last_error"], record(store)["last_result"]) == (None, "did it")
    assert record(store)["failures"] == 0


def test_a_holder_that_died_loses_its_turn(store: Store, clock: FakeClock) -> None:
    died = threading.Event()

    def run(_: Store) -> str:
        if not died.is_set():
            died.set()
            raise Killed
        return "did it"

    rota = (agent(run),)
    enter_rota(store, rota)
    with pytest.raises(Killed):
        run_due(store, "a", rota)
    clock.advance(JOB_LEASE_SECONDS * SECOND - 1)
    assert run_due(store, "b", rota) == []
    clock.advance(1)
    assert run_due(store, "b", rota) == ["probe"]
    assert record(store)["last_result"] == "did it"


def test_a_holder_that_was_given_up_does_not_overwrite_what_his_successor_recorded(
    store: Store, clock: FakeClock
) -> None:
    def slow(store: Store) -> str:
        clock.advance(JOB_LEASE_SECONDS * SECOND)
        assert run_due(store, "b", (agent(lambda _: "the successor"),)) == ["probe"]
        clock.advance(5)
        return "the one who was given up"

    rota = (agent(slow),)
    enter_rota(store, rota)
    run_due(store, "a", rota)
    row = record(store)
    assert row["last_result"] == "the successor"
    assert row["next_run_at"] == clock.now() - 5 + EVERY * SECOND


def test_the_pause_after_failures_grows_up_to_an_hour_and_each_is_told(
    store: Store, clock: FakeClock
) -> None:
    def fail(_: Store) -> str:
        raise OSError("disk")

    rota = (agent(fail),)
    enter_rota(store, rota)
    pauses = []
    for count in range(1, 12):
        assert run_due(store, "a", rota) == ["probe"]
        assert record(store)["failures"] == count
        pauses.append((int(str(record(store)["next_run_at"])) - clock.now()) // SECOND)
        clock.advance(pauses[-1] * SECOND)
    assert pauses == [20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]
    told = [row for row in events(store) if row["type"] == "system_agent_failed"]
    assert len(told) == 11
    assert json.loads(str(told[-1]["data"])) == {"name": "probe", "error": "disk", "failures": 11}


def test_a_failing_loop_is_never_tried_more_often_than_one_that_works(
    store: Store, clock: FakeClock
) -> None:
    def fail(_: Store) -> str:
        raise OSError("disk")

    rota = (MaintenanceJob("hourly", 3600, fail),)
    enter_rota(store, rota)
    run_due(store, "a", rota)
    assert record(store, "hourly")["next_run_at"] == clock.now() + HOUR


def test_a_long_run_keeps_its_turn_for_as_long_as_it_is_renewed(
    store: Store, clock: FakeClock
) -> None:
    others: list[str] = []

    def long(store: Store) -> str:
        for _ in range(10):
            clock.advance((JOB_LEASE_SECONDS - 1) * SECOND)
            renew_job_leases(store, "a")
            renew_job_leases(store, "b")
            others.extend(run_due(store, "b", rota))
        return "at last"

    rota = (agent(long),)
    enter_rota(store, rota)
    run_due(store, "a", rota)
    assert others == []
    row = record(store)
    assert (row["last_result"], row["last_duration"]) == ("at last", 90 * SECOND)
    assert (row["holder"], row["lease_expires_at"]) == (None, 0)


def test_a_run_whose_end_could_not_be_recorded_is_not_held_for_ever(
    store: Store, clock: FakeClock
) -> None:
    """As when the server went away meanwhile: the process lives, and goes on renewing its turns."""
    broken = [True]

    def run(_: Store) -> str:
        if broken:
            broken.pop()
            raise Killed
        return "did it"

    probe = agent(run)
    enter_rota(store, (probe,))
    with pytest.raises(Killed):
        run_job_if_due(store, "a", probe)
    clock.advance(3 * SECOND)
    renew_job_leases(store, "a")
    assert run_job_if_due(store, "b", probe) > 0
    assert record(store)["last_result"] is None
    assert run_job_if_due(store, "a", probe) == EVERY
    assert record(store)["last_result"] == "did it"


def test_what_is_given_back_is_taken_by_another_at_once(store: Store) -> None:
    def die(_: Store) -> str:
        raise Killed

    enter_rota(store, (agent(die),))
    with pytest.raises(Killed):
        run_due(store, "a", (agent(die),))
    do(store, release_job_leases, "b")
    assert record(store)["holder"] == "a"
    do(store, release_job_leases, "a")
    assert run_due(store, "b", (agent(lambda _: "did it"),)) == ["probe"]


def test_who_asks_is_told_when_to_ask_again(store: Store, clock: FakeClock) -> None:
    probe = agent(lambda _: "did it")
    enter_rota(store, (probe,))
    assert run_job_if_due(store, "a", probe) == EVERY
    clock.advance(4 * SECOND)
    assert run_job_if_due(store, "b", probe) == EVERY - 4
    clock.advance((EVERY - 4) * SECOND)
    assert run_job_if_due(store, "b", probe) == EVERY


def test_who_meets_anothers_turn_is_told_when_that_ends_unless_renewed(store: Store) -> None:
    waits: list[float] = []

    def run(store: Store) -> str:
        waits.append(run_job_if_due(store, "b", agent(lambda _: "twice")))
        return "did it"

    enter_rota(store, (agent(run),))
    run_job_if_due(store, "a", agent(run))
    assert waits == [JOB_LEASE_SECONDS]


def test_a_clock_that_is_set_back_stops_no_loop(store: Store, clock: FakeClock) -> None:
    def die(_: Store) -> str:
        raise Killed

    probe = agent(lambda _: "did it")
    rota = (probe, agent(die, "dying"))
    enter_rota(store, rota)
    clock.advance(DAY)
    with pytest.raises(Killed):
        run_due(store, "a", rota)
    clock.advance(-DAY)
    assert run_due(store, "b", (probe, replace(probe, name="dying"))) == ["probe", "dying"]
