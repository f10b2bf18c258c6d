"""The sockets of SQLite's wake-ups: nobody's death, sleep or long path is in the writer's way."""

from __future__ import annotations

import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.background import (
    LOST_AFTER_SECONDS,
    delete_lost_workers,
    register_worker,
    report_liveness,
)
from bullpen.core.clock import SECOND
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from tests.stores import FakeClock, Stores
from tests.wake.listening import NO_POLL, SOON, heard, listening, open_lane, send


@pytest.fixture
def home(stores: Stores, clock: FakeClock) -> Iterator[SqliteStore]:
    """A store on SQLite, in a short home, with a lane."""
    with stores.opened(stores.settings("sqlite", **NO_POLL), clock) as opened:
        assert isinstance(opened, SqliteStore)
        open_lane(opened)
        yield opened


def enter(store: Store, address: str) -> None:
    """Put an address into the register."""
    with store.write() as tx:
        register_worker(tx, "test", address)


def test_the_socket_is_in_the_homes_run_directory_and_only_the_owners(home: SqliteStore) -> None:
    with listening(home) as listener:
        path = Path(str(listener.address))
        assert path.parent == home.settings.run
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()


def test_dead_workers_sockets_do_not_disturb_the_writer(home: SqliteStore, tmp_path: Path) -> None:
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(left))
    (tmp_path / "file").touch()
    for address in (str(left), "/nowhere/at/all.sock", str(tmp_path / "file"), "x" * 200, ""):
        enter(home, address)
    with listening(home) as listener:
        send(home)
        assert heard(listener, "messages")


def test_a_full_socket_never_blocks_the_writer_nor_the_others(
    home: SqliteStore, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asleep:
        asleep.bind(str(tmp_path / "asleep.sock"))
        enter(home, str(tmp_path / "asleep.sock"))
        with listening(home) as listener:
            began = time.monotonic()
            for _ in range(2000):
                home.notifier.notify({"events"})
            assert time.monotonic() - began < SOON
            listener.wait(0.0)
            send(home)
            assert heard(listener, "messages")


def test_only_workers_of_this_machine_are_rung_for(home: SqliteStore, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as elsewhere:
        elsewhere.bind(str(tmp_path / "elsewhere.sock"))
        elsewhere.setblocking(False)
        with home.write() as tx:
            worker = register_worker(tx, "test", str(tmp_path / "elsewhere.sock"))
        with home.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE workers SET host = 'another' WHERE id = ?", (worker,)
            )
        send(home)
        with pytest.raises(BlockingIOError):
            elsewhere.recv(100)


@pytest.fixture
def deep(stores: Stores, clock: FakeClock, tmp_path: Path) -> Iterator[Store]:
    """A store whose home has a longer path than a socket may have."""
    settings = stores.settings("sqlite", **NO_POLL)
    path = tmp_path / ("d" * 60) / ("e" * 60)
    path.mkdir(parents=True)
    (settings.home / "bullpen.db").rename(path / "bullpen.db")
    with stores.opened(replace(settings, home=path), clock) as opened:
        open_lane(opened)
        yield opened


def test_in_a_home_with_a_long_path_the_socket_goes_elsewhere_and_works(deep: Store) -> None:
    with listening(deep) as listener:
        path = Path(str(listener.address))
        assert len(str(path)) < 107
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        send(deep)
        assert heard(listener, "messages")


def test_a_closed_listener_leaves_nothing_behind(
    deep: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    with listening(deep) as listener:
        assert Path(str(listener.address)).is_relative_to(short)
    # The directory stays for the next listener of this home.
    left = list(short.rglob("*.sock"))
    shutil.rmtree(short)
    assert left == []


def test_a_worker_that_was_forgotten_while_it_lived_is_woken_after_it_registers_again(
    stores: Stores, home: SqliteStore, clock: FakeClock
) -> None:
    """As after a laptop's sleep: silent for a minute, struck out by another, and back."""
    listener = home.listen()
    with home.write() as tx:
        worker = register_worker(tx, "processor", listener.address)
    clock.advance(LOST_AFTER_SECONDS * SECOND)
    with home.write() as tx:
        assert len(delete_lost_workers(tx)) == 1
    with home.write() as tx:
        assert not report_liveness(tx, worker)
        register_worker(tx, "processor", listener.address)
    with stores.opened(home.settings, clock) as writer:
        send(writer)
    found = heard(listener, "messages")
    listener.close()
    assert found
