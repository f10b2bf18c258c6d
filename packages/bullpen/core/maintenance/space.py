"""Gives back to the disk what deleted rows leave, and says how much of the database is empty."""

from __future__ import annotations

import logging

from sqlalchemy import text

from bullpen.core.maintenance.batches import REST, in_batches
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

SLICE = 100
"""Pages that are given back in one transaction."""
LEAST_PAGES = 1000
"""So few free pages are kept: the next rows take them."""
BEGIN, END = 4, 16
"""Begins when more than the fourth part of the file is free, ends at the sixteenth."""
MOSTLY_DEAD = 10_000
"""So many dead rows at the least, and more than living ones, are worth a warning."""
LARGEST = 5
MEGABYTE = 1 << 20

# Python takes one step of it, and forgets the others, whatever number is given.
GIVE_BACK: Statement[None] = Statement(lambda: text("PRAGMA incremental_vacuum(1)"))

TABLES: Statement[tuple[str, int, int, int]] = Statement(
    lambda: text(
        "SELECT relname, n_live_tup, n_dead_tup, pg_total_relation_size(relid)"
        " FROM pg_stat_user_tables WHERE schemaname = current_schema() ORDER BY 4 DESC, 1"
    )
)


def space(store: Store) -> str:
    """Give back what is free, a little at a time; on PostgreSQL, which does so itself, look."""
    return _shrink(store) if isinstance(store, SqliteStore) else _bloat(store)


def _shrink(store: Store) -> str:
    with store.read() as tx:
        free, pages = _pages(tx)
        returns = tx.fetch("PRAGMA auto_vacuum") == (2,)
    told = f"{free} of {pages} pages are free"
    if free <= LEAST_PAGES or free * BEGIN <= pages:
        return told
    if not returns:
        return f"{told}, and stay so: bullpen db upgrade gives them back"
    returned = in_batches(store, _slice, REST)
    return f"{told}, {returned} given back"


def _slice(tx: Transaction) -> int:
    free, pages = _pages(tx)
    if free <= LEAST_PAGES or free * END <= pages:
        return 0
    for _ in range(SLICE):
        tx.write(GIVE_BACK, {})
    return pages - _pages(tx)[1]


def _pages(tx: Transaction) -> tuple[int, int]:
    """How many are free, and how many there are."""
    free, pages = tx.fetch("PRAGMA freelist_count"), tx.fetch("PRAGMA page_count")
    assert free is not None
    assert pages is not None
    return int(str(free[0])), int(str(pages[0]))


def _bloat(store: Store) -> str:
    with store.read() as tx:
        tables = tx.all(TABLES, {})
    for name, living, dead, size in tables:
        if dead > max(living, MOSTLY_DEAD):
            log.warning(
                "table %s is mostly dead rows: %d beside %d living, %.1f MB; does autovacuum run?",
                *(name, dead, living, size / MEGABYTE),
            )
    largest = ", ".join(
        f"{name} {size / MEGABYTE:.1f} MB ({100 * dead // max(1, living + dead)} % dead)"
        for name, living, dead, size in tables[:LARGEST]
    )
    total = sum(size for *_, size in tables)
    return f"{total / MEGABYTE:.1f} MB; {largest}"
