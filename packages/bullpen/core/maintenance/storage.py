"""Storage jobs: WAL checkpoints and free pages."""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import text

from bullpen.core.maintenance.retention import PAUSE_FACTOR, in_batches
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

TRUNCATE_FACTOR = 100
"""At this multiple of `wal_bytes` the log is truncated; writers wait meanwhile."""
PAGES_PER_BATCH = 100
MIN_FREE_PAGES = 1000
"""Free pages that stay in the file for the next rows."""
START_DIVISOR, STOP_DIVISOR = 4, 16
"""Starts when more than a quarter of the file is free, stops at a sixteenth."""
MIN_DEAD_ROWS = 10_000
"""Below this number of dead rows there is no warning."""
MAX_TABLES_LISTED = 5
MEGABYTE = 1 << 20

# One page a statement: sqlite3 runs one step of this pragma, whatever its argument.
VACUUM_PAGE: Statement[None] = Statement(lambda: text("PRAGMA incremental_vacuum(1)"))

TABLE_SIZES: Statement[tuple[str, int, int, int]] = Statement(
    lambda: text(
        "SELECT relname, n_live_tup, n_dead_tup, pg_total_relation_size(relid)"
        " FROM pg_stat_user_tables WHERE schemaname = current_schema() ORDER BY 4 DESC, 1"
    )
)


def checkpoint(store: Store) -> str:
    """Copy a large write-ahead log into the database, without blocking readers or writers."""
    if not isinstance(store, SqliteStore):
        return "not needed"
    wal = Path(f"{store.path}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    limit = store.settings.wal_bytes
    if size < limit:
        return f"{size} bytes, below the limit"
    mode = "TRUNCATE" if size > TRUNCATE_FACTOR * limit else "PASSIVE"
    connection = store.connect()
    try:
        busy, pages, moved = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        connection.close()
    return f"{size} bytes: {mode.lower()} checkpoint, {moved} of {pages} pages copied, busy {busy}"


def reclaim_space(store: Store) -> str:
    """Free unused pages of the SQLite file; report the sizes of PostgreSQL tables."""
    return _shrink(store) if isinstance(store, SqliteStore) else _report_bloat(store)


def _shrink(store: Store) -> str:
    with store.read() as tx:
        free, pages = _page_counts(tx)
        incremental = tx.fetch("PRAGMA auto_vacuum") == (2,)
    state = f"{free} of {pages} pages are free"
    if free <= MIN_FREE_PAGES or free * START_DIVISOR <= pages:
        return state
    if not incremental:
        return f"{state}. To return them to the disk: bullpen db upgrade"
    returned = in_batches(store, _vacuum_batch, PAUSE_FACTOR)
    return f"{state}, {returned} returned to the disk"


def _vacuum_batch(tx: Transaction) -> int:
    free, pages = _page_counts(tx)
    if free <= MIN_FREE_PAGES or free * STOP_DIVISOR <= pages:
        return 0
    for _ in range(PAGES_PER_BATCH):
        tx.write(VACUUM_PAGE, {})
    return pages - _page_counts(tx)[1]


def _page_counts(tx: Transaction) -> tuple[int, int]:
    """The number of free pages, and of all pages."""
    free, pages = tx.fetch("PRAGMA freelist_count"), tx.fetch("PRAGMA page_count")
    assert free is not None
    assert pages is not None
    return int(str(free[0])), int(str(pages[0]))


def _report_bloat(store: Store) -> str:
    with store.read() as tx:
        tables = tx.all(TABLE_SIZES, {})
    for name, living, dead, size in tables:
        if dead > max(living, MIN_DEAD_ROWS):
            log.warning(
                "table %s has %d dead rows and %d live rows (%.1f MB): check autovacuum",
                *(name, dead, living, size / MEGABYTE),
            )
    largest = ", ".join(
        f"{name} {size / MEGABYTE:.1f} MB ({100 * dead // max(1, living + dead)} % dead)"
        for name, living, dead, size in tables[:MAX_TABLES_LISTED]
    )
    total = sum(size for *_, size in tables)
    return f"{total / MEGABYTE:.1f} MB; {largest}"
