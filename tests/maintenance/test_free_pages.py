"""A file that was large becomes small again, a little at a time."""

from __future__ import annotations

import logging
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, text

from bullpen.core.maintenance.storage import (
    MIN_DEAD_ROWS,
    MIN_FREE_PAGES,
    STOP_DIVISOR,
    reclaim_space,
)
from bullpen.core.models import EVENTS
from bullpen.core.settings import Settings
from bullpen.core.store import migrate
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.sqlite import SqliteStore
from tests.conformance.verbs import rows
from tests.stores import FakeClock, Stores

ROWS = 9_000


@pytest.fixture
def sqlite(stores: Stores, clock: FakeClock) -> Iterator[Store]:
    """An empty store in a file."""
    with stores.opened(stores.settings("sqlite"), clock) as store:
        yield store


def fill(store: Store, count: int = ROWS) -> None:
    """Let it grow by about so many times a kilobyte."""
    row = {"type": "x", "data": "x" * 1000, "created_at": 1}
    with store.engine.begin() as connection:
        connection.execute(insert(EVENTS), [row] * count)


def shrink(store: Store, keep: int = 1) -> None:
    """Delete all of it but the newest."""
    with store.engine.begin() as connection:
        connection.execute(delete(EVENTS).where(EVENTS.c.id <= ROWS - keep))


def pragma(store: Store, name: str) -> int:
    """What SQLite says."""
    with store.read() as tx:
        tx.fetch("PRAGMA page_count")  # what it knew of the file when that was new is not asked for
        found = tx.fetch(f"PRAGMA {name}")
    assert found is not None
    return int(str(found[0]))


def test_pages_that_are_free_are_given_back_and_nothing_is_lost(sqlite: Store) -> None:
    fill(sqlite)
    before = pragma(sqlite, "page_count")
    shrink(sqlite)
    kept = rows(sqlite, EVENTS)
    told = reclaim_space(sqlite)
    assert "returned to the disk" in told
    after, free = pragma(sqlite, "page_count"), pragma(sqlite, "freelist_count")
    assert after < before - MIN_FREE_PAGES
    assert free <= max(MIN_FREE_PAGES, after // STOP_DIVISOR)
    assert rows(sqlite, EVENTS) == kept
    with sqlite.read() as tx:
        assert tx.fetch("PRAGMA integrity_check") == ("ok",)


def test_the_file_itself_is_smaller_afterwards(sqlite: Store) -> None:
    assert isinstance(sqlite, SqliteStore)
    fill(sqlite)
    shrink(sqlite)
    with closing(sqlite.connect()) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = sqlite.path.stat().st_size
    reclaim_space(sqlite)
    with closing(sqlite.connect()) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert sqlite.path.stat().st_size < before / 1.5


@pytest.mark.parametrize("keep", [ROWS - 2500, ROWS - 100])
def test_a_little_that_is_free_is_left_for_the_next_rows(sqlite: Store, keep: int) -> None:
    fill(sqlite)
    shrink(sqlite, keep)
    before = pragma(sqlite, "page_count")
    assert reclaim_space(sqlite).endswith("pages are free")
    assert pragma(sqlite, "page_count") == before


def old_file(settings: Settings) -> None:
    """A database as it was made before it could shrink."""
    path = settings.home / "bullpen.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")


def test_a_file_of_before_says_what_gives_its_pages_back(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    old_file(settings)
    with stores.opened(settings) as store:
        assert pragma(store, "auto_vacuum") == 0
        fill(store)
        shrink(store)
        assert "bullpen db upgrade" in reclaim_space(store)


def test_an_upgrade_lets_a_file_of_before_shrink_and_keeps_what_is_in_it(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    old_file(settings)
    with stores.opened(settings) as store:
        fill(store, 3)
        before = rows(store, EVENTS)
        migrate.upgrade(store)
        assert pragma(store, "auto_vacuum") == 2
        assert rows(store, EVENTS) == before
        with store.read() as tx:
            assert tx.fetch("PRAGMA journal_mode") == ("wal",)


def test_an_upgrade_that_cannot_rewrite_the_file_is_an_upgrade(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    settings = stores.settings("sqlite")
    old_file(settings)
    with stores.opened(settings) as store:
        fill(store)
        shrink(store)
        with files_of_at_most(100_000):
            migrate.upgrade(store)
        assert pragma(store, "auto_vacuum") == 0
        assert "the file cannot shrink yet" in caplog.text
        migrate.upgrade(store)
        assert pragma(store, "auto_vacuum") == 2


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a disk that is full: what is longer cannot be written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_new_file_can_shrink(tmp_path: Path) -> None:
    with closing(open_store(Settings(home=tmp_path), check=False)) as store:
        migrate.upgrade(store)
        assert pragma(store, "auto_vacuum") == 2
        assert migrate.differences(store) == []


@pytest.mark.postgres
def test_postgresql_says_which_tables_are_large_and_warns_of_dead_rows(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    with stores.opened(stores.settings("postgresql")) as store:
        assert " MB; " in reclaim_space(store)
        assert caplog.records == []
        with store.engine.begin() as connection:
            connection.execute(text("ALTER TABLE events SET (autovacuum_enabled = false)"))
        fill(store, MIN_DEAD_ROWS + 2)
        with store.engine.begin() as connection:
            connection.execute(delete(EVENTS).where(EVENTS.c.id > 1))
        with store.engine.begin() as connection:
            connection.execute(text("SELECT pg_stat_force_next_flush()"))
        assert "events" in reclaim_space(store)
        (warning,) = (each for each in caplog.records if each.levelno >= logging.WARNING)
        assert "table events has " in warning.getMessage()
