"""The write-ahead log stays short, and nobody waits for that."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bullpen.core.maintenance.storage import TRUNCATE_FACTOR, checkpoint
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from tests.conformance.verbs import lane, send
from tests.stores import Stores

LIMIT = 200_000


@pytest.fixture
def opened(stores: Stores) -> Iterator[Callable[[int], SqliteStore]]:
    """Opens a store on SQLite with this limit of the log."""
    made: list[Store] = []

    def open_with(limit: int) -> SqliteStore:
        store = stack(stores, limit)
        made.append(store)
        lane(store)
        return store

    yield open_with
    for store in made:
        store.close()


def stack(stores: Stores, limit: int) -> SqliteStore:
    """A store whose log may have so many bytes."""
    settings = stores.settings("sqlite", wal_bytes=limit)
    return SqliteStore(settings.home / "bullpen.db", settings)


def log_size(store: SqliteStore) -> int:
    """The bytes of the log."""
    return Path(f"{store.path}-wal").stat().st_size


def grow(store: SqliteStore, size: int) -> None:
    """Write until the log has so many bytes."""
    while log_size(store) < size:
        send(store, "x" * 20_000)


def count(reader: sqlite3.Connection) -> int:
    """How many messages a reader sees."""
    return int(reader.execute("SELECT count(*) FROM messages").fetchone()[0])


def test_a_short_log_is_left_alone(opened: Callable[[int], SqliteStore]) -> None:
    store = opened(10_000_000)
    send(store)
    assert "below the limit" in checkpoint(store)


def test_a_grown_log_is_copied_and_written_from_its_start_again(
    opened: Callable[[int], SqliteStore],
) -> None:
    store = opened(LIMIT)
    grow(store, LIMIT)
    told = checkpoint(store)
    assert "passive" in told
    assert told.endswith("busy 0")
    size = log_size(store)
    for _ in range(3):
        send(store, "x" * 20_000)
    assert log_size(store) == size


def test_with_a_loop_at_work_the_log_stays_near_its_limit(
    opened: Callable[[int], SqliteStore],
) -> None:
    store = opened(LIMIT)
    for _ in range(100):
        send(store, "x" * 20_000)
        checkpoint(store)
    assert log_size(store) < 2 * LIMIT


def test_a_reader_is_never_blocked_and_keeps_what_it_sees(
    opened: Callable[[int], SqliteStore],
) -> None:
    store = opened(LIMIT)
    send(store)
    reader = store.connect(query_only=True)
    reader.execute("BEGIN")
    assert count(reader) == 1
    grow(store, LIMIT)
    began = time.monotonic()
    checkpoint(store)
    assert time.monotonic() - began < 25  # less than a busy database is waited for
    assert count(reader) == 1
    reader.execute("COMMIT")
    assert count(reader) > 1
    reader.close()


def test_in_an_emergency_the_log_is_cut_to_nothing(opened: Callable[[int], SqliteStore]) -> None:
    store = opened(1_000)
    grow(store, TRUNCATE_FACTOR * 1_000 + 1)
    assert "truncate" in checkpoint(store)
    assert log_size(store) == 0
    send(store)


def test_an_emergency_waits_for_no_reader_and_loses_nothing(
    opened: Callable[[int], SqliteStore],
) -> None:
    store = opened(1_000)
    send(store)
    reader = store.connect(query_only=True)
    reader.execute("BEGIN")
    assert count(reader) == 1
    grow(store, TRUNCATE_FACTOR * 1_000 + 1)
    began = time.monotonic()
    assert "busy 1" in checkpoint(store)
    assert time.monotonic() - began < 25  # less than a busy database is waited for
    assert count(reader) == 1
    reader.execute("COMMIT")
    reader.close()
    assert "busy 0" in checkpoint(store)
    assert log_size(store) == 0


def test_writers_go_on_while_the_log_is_copied(opened: Callable[[int], SqliteStore]) -> None:
    store = opened(1_000)
    failures: list[BaseException] = []
    done = threading.Event()

    def copy() -> None:
        try:
            while not done.is_set():
                checkpoint(store)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=copy)
    thread.start()
    for number in range(60):
        send(store, f"{number} " + "x" * 5_000)
    done.set()
    thread.join(30)
    assert failures == []
    with store.read() as tx:
        assert tx.fetch("SELECT count(*) FROM messages") == (60,)


@pytest.mark.postgres
def test_postgresql_needs_none(stores: Stores) -> None:
    with stores.opened(stores.settings("postgresql")) as store:
        assert checkpoint(store) == "not needed"
