"""The rota: each loop in its time, by one process at a time; one that fails stops no other."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

import psycopg
import pytest
from sqlalchemy.exc import SQLAlchemyError

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import StoreBusy
from bullpen.core.maintenance.rota import ROTA, TURN_SECONDS, SystemAgent, enter_rota, run_due
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.store.base import Store
from tests.conformance.verbs import Row, rows
from tests.stores import FakeClock

EVERY = 10


class Killed(BaseException):
    pass


def agent(run: Callable[[Store], str], name: str = "probe") -> SystemAgent:
    """A loop that does this."""
    return SystemAgent(name, EVERY, run)


def record(store: Store, name: str = "probe") -> Row:
    """What is recorded of a loop."""
    (row,) = (row for row in rows(store, SYSTEM_AGENTS) if row["name"] == name)
    return row


def test_every_loop_runs_at_once_on_a_new_database_and_says_what_it_did(store: Store) -> None:
    enter_rota(store)
    names = [each.name for each in ROTA]
    assert run_due(store, "processor_1") == names
    assert sorted(row["name"] for row in rows(store, SYSTEM_AGENTS)) == sorted(names)
    for row in rows(store, SYSTEM_AGENTS):
        assert row["last_error"] is None, row
        assert row["last_result"]
        assert row["holder"] is None


def test_every_loop_runs_at_its_own_pace(store: Store, clock: FakeClock) -> None:
    enter_rota(store)
    run_due(store, "processor_1")
    ran = {each.name: 0 for each in ROTA}
    for _ in range(60):
        clock.advance(SECOND)
        for name in run_due(store, "processor_1"):
            ran[name] += 1
    assert ran == {each.name: 60 // each.every_seconds for each in ROTA}


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


def test_a_loop_that_another_took_after_the_look_is_left_to_him(store: Store) -> None:
    def die(_: Store) -> str:
        raise Killed

    def first(store: Store) -> str:
        with pytest.raises(Killed):
            run_due(store, "b", (agent(die),))
        return "did it"

    rota = (agent(first, "first"), agent(lambda _: "twice"))
    enter_rota(store, rota)
    assert run_due(store, "a", rota) == ["first"]
    assert record(store)["holder"] == "b"


def test_of_many_that_ask_at_the_same_moment_one_runs(store: Store) -> None:
    runs: list[int] = []

    def run(_: Store) -> str:
        runs.append(1)
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
    pause = min(2 * EVERY * SECOND, MINUTE)
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
    broken.append(False)
    clock.advance(MINUTE)
    run_due(store, "a", rota)
    assert (record(store)["last_error"], record(store)["last_result"]) == (None, "did it")


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
    clock.advance(TURN_SECONDS * SECOND - 1)
    assert run_due(store, "b", rota) == []
    clock.advance(1)
    assert run_due(store, "b", rota) == ["probe"]
    assert record(store)["last_result"] == "did it"


def test_a_holder_that_was_given_up_does_not_overwrite_what_his_successor_recorded(
    store: Store, clock: FakeClock
) -> None:
    def slow(store: Store) -> str:
        clock.advance(TURN_SECONDS * SECOND)
        assert run_due(store, "b", (agent(lambda _: "the successor"),)) == ["probe"]
        clock.advance(5)
        return "the one who was given up"

    rota = (agent(slow),)
    enter_rota(store, rota)
    run_due(store, "a", rota)
    row = record(store)
    assert row["last_result"] == "the successor"
    assert row["next_run_at"] == clock.now() - 5 + EVERY * SECOND
