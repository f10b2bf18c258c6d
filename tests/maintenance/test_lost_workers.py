"""The register of processes: entered, alive, gone, forgotten and back."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import update

from bullpen.core.background import (
    LOST_AFTER_SECONDS,
    register_worker,
    report_liveness,
    unregister_worker,
)
from bullpen.core.clock import SECOND
from bullpen.core.maintenance.recovery import check_workers
from bullpen.core.models import WORKERS
from bullpen.core.queue.finish import finish
from bullpen.core.store.base import Store
from tests.conformance.verbs import ANSWERED, do, events, lane, rows, send, take
from tests.stores import FakeClock


def enter(store: Store, wake: str | None = None, kind: str = "processor") -> str:
    """Register this process; gives its id."""
    with store.write() as tx:
        return register_worker(tx, kind, wake)


def is_known(store: Store, worker: str) -> bool:
    """Whether a heartbeat is accepted."""
    with store.write() as tx:
        return report_liveness(tx, worker)


def test_a_process_is_entered_with_who_and_where_it_is(store: Store, clock: FakeClock) -> None:
    worker = enter(store, "/tmp/somewhere.sock")
    assert worker.startswith("processor_")
    assert rows(store, WORKERS) == [
        {
            "id": worker,
            "kind": "processor",
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "wake": "/tmp/somewhere.sock",
            "started_at": clock.now(),
            "heartbeat_at": clock.now(),
        }
    ]


def test_a_restarted_process_is_somebody_else(store: Store) -> None:
    assert enter(store) != enter(store)


def test_who_leaves_is_struck_out_at_once_and_nobody_else_is(store: Store) -> None:
    leaving, staying = enter(store), enter(store)
    do(store, unregister_worker, leaving)
    do(store, unregister_worker, leaving)
    assert [row["id"] for row in rows(store, WORKERS)] == [staying]
    assert not is_known(store, leaving)


def test_who_beats_is_not_forgotten(store: Store, clock: FakeClock) -> None:
    worker = enter(store)
    for _ in range(10):
        clock.advance(LOST_AFTER_SECONDS * SECOND - 1)
        assert is_known(store, worker)
        assert check_workers(store) == "1 processor; 0 lost"


def test_who_is_silent_is_forgotten_and_can_register_again(store: Store, clock: FakeClock) -> None:
    silent = enter(store)
    clock.advance(LOST_AFTER_SECONDS * SECOND - 1)
    alive = enter(store)
    assert check_workers(store) == "2 processor; 0 lost"
    clock.advance(1)
    assert check_workers(store) == "1 processor; 1 lost"
    assert [row["id"] for row in rows(store, WORKERS)] == [alive]
    assert not is_known(store, silent)
    again = enter(store)
    assert again != silent
    assert is_known(store, again)


def test_a_forgotten_workers_socket_is_removed(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))
    enter(store, str(left))
    enter(store, str(tmp_path / "was gone already.sock"))
    enter(store, None)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone, store.engine.begin() as connection:
        gone.wait()
        connection.exec_driver_sql(f"UPDATE workers SET pid = {gone.pid}")
    clock.advance(LOST_AFTER_SECONDS * SECOND)
    enter(store)
    assert check_workers(store) == "1 processor; 3 lost"
    assert not left.exists()


def test_a_path_of_another_machine_is_not_removed_here(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    same_path = tmp_path / "wake.sock"
    same_path.touch()
    enter(store, str(same_path))
    with store.engine.begin() as connection:
        connection.execute(update(WORKERS).values(host="another"))
    clock.advance(LOST_AFTER_SECONDS * SECOND)
    enter(store)
    assert check_workers(store) == "1 processor; 1 lost"
    assert same_path.exists()


def test_a_forgotten_workers_claim_lives_as_long_as_its_lease(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store)
    found = take(store)
    enter(store)
    clock.advance(LOST_AFTER_SECONDS * SECOND)
    enter(store)
    assert check_workers(store).endswith("1 lost")
    do(store, finish, found.token, ANSWERED)


def test_who_is_lost_is_told_with_how_long_it_was_silent(store: Store, clock: FakeClock) -> None:
    enter(store, kind="processor")
    enter(store, kind="api")
    clock.advance((LOST_AFTER_SECONDS + 7) * SECOND)
    enter(store, kind="scheduler")
    assert check_workers(store) == "1 scheduler; 2 lost"
    told = [json.loads(str(row["data"])) for row in events(store, "worker_lost")]
    assert sorted(each.pop("kind") for each in told) == ["api", "processor"]
    assert (
        told
        == [
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "silent_seconds": LOST_AFTER_SECONDS + 7,
            }
        ]
        * 2
    )
    assert check_workers(store) == "1 scheduler; 0 lost"
    assert len(events(store, "worker_lost")) == 2


def test_after_the_machine_slept_nobody_is_lost(store: Store, clock: FakeClock) -> None:
    scheduler, processor = enter(store, kind="scheduler"), enter(store)
    clock.advance(LOST_AFTER_SECONDS * 100 * SECOND)
    check_workers(store)
    assert is_known(store, scheduler)
    assert is_known(store, processor)
    assert check_workers(store) == "1 processor, 1 scheduler; 0 lost"
    assert events(store, "worker_lost") == []


def test_messages_that_wait_for_nobody_are_warned_of(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def warned() -> bool:
        caplog.clear()
        check_workers(store)
        return any("no processor is running" in each.message for each in caplog.records)

    enter(store, kind="scheduler")
    lane(store)
    assert not warned()
    send(store)
    assert warned()
    processor = enter(store)
    assert not warned()
    do(store, unregister_worker, processor)
    assert warned()
    take(store)
    assert not warned()
