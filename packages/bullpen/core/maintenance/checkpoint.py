"""Keeps SQLite's write-ahead log short, outside of anybody's commit."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore

TRUNCATE_FACTOR = 100
"""So many times the usual limit, and writers wait for the log to be cut to nothing."""


def checkpoint(store: Store) -> str:
    """Copy the log into the database if it has grown; never in the way of readers or writers."""
    if not isinstance(store, SqliteStore):
        return "not needed"
    log = Path(f"{store.path}-wal")
    size = log.stat().st_size if log.exists() else 0
    limit = store.settings.wal_bytes
    if size < limit:
        return f"{size} bytes, nothing to do"
    mode = "TRUNCATE" if size > TRUNCATE_FACTOR * limit else "PASSIVE"
    connection = store.connect()
    try:
        busy, pages, moved = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        connection.close()
    return f"{size} bytes: {mode.lower()}, {moved} of {pages} pages moved, busy {busy}"
