"""`busy_seconds` is the wait of everyone, not of one after the other (SQLite)."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bullpen.core.errors import StoreBusy
from bullpen.core.store.base import Store
from bullpen.core.store.group_commit import GroupCommit
from bullpen.core.store.sqlite import SqliteStore
from tests.stores import Stores

WRITERS = 12
LONG = 60.0
SLACK = 0.9
"""What a loaded machine may add; half of what the second would take behind the first."""


@pytest.fixture
def store(stores: Stores) -> Iterator[SqliteStore]:
    """A store whose writers wait for two seconds."""
    with stores.opened(stores.settings("sqlite", busy_seconds=2)) as opened:
        assert isinstance(opened, SqliteStore)
        with opened.write():
            pass  # the connection is open
        yield opened


@pytest.fixture
def peer(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """Another process that stands still with the write lock."""
    connection = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def write(store: Store) -> None:
    """A write of its own."""
    with store.write() as tx:
        tx.fetch("SELECT 1")


def ask(count: int, once: Callable[[], object], apart: float = 0.0) -> list[float]:
    """Let so many write at once; gives how long each waited until it was told."""
    waits: list[float] = []

    def run() -> None:
        began = time.monotonic()
        with pytest.raises(StoreBusy):
            once()
        waits.append(time.monotonic() - began)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
        time.sleep(apart)
    for thread in threads:
        thread.join(LONG)
    return waits


@pytest.mark.usefixtures("peer")
def test_writers_that_come_together_are_told_together(store: SqliteStore) -> None:
    waits = ask(WRITERS, lambda: write(store))
    assert len(waits) == WRITERS
    assert min(waits) >= 2.0
    assert max(waits) <= 2.0 + SLACK


@pytest.mark.usefixtures("peer")
def test_of_a_group_that_is_committed_together_each_waits_for_its_own_time(
    store: SqliteStore,
) -> None:
    together = GroupCommit(store)
    waits = ask(WRITERS, lambda: together.write(lambda tx: tx.fetch("SELECT 1")), apart=0.1)
    assert len(waits) == WRITERS
    assert min(waits) >= 2.0
    assert max(waits) <= 2.0 + SLACK


def test_those_that_wait_go_on_when_the_lock_is_given_back(
    store: SqliteStore, peer: sqlite3.Connection
) -> None:
    together = GroupCommit(store)
    done: list[object] = []
    threads = [
        threading.Thread(
            target=lambda: done.append(together.write(lambda tx: tx.fetch("SELECT 1")))
        )
        for _ in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    peer.execute("ROLLBACK")
    for thread in threads:
        thread.join(LONG)
    assert done == [(1,)] * WRITERS
