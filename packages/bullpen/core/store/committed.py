"""Read a growing table by id without losing a row that commits late.

An id is taken before its transaction commits, so on PostgreSQL a lower id may appear after a
higher one, and a reader that has seen the higher one would never ask for the lower. So: note the
highest id, wait for the transactions that write at that moment, and read up to it. SQLite has
one writer at a time.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import BigInteger, Table, TableClause, Text, column, func, select, table, text

from bullpen.core.clock import poll_until
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

MAX_WRITER_WAIT_SECONDS = 2.0

WRITER_POLL_SECONDS = 0.005


def committed_up_to(store: Store, rows: Table) -> int:
    """Return the id up to which all rows are committed; 0 if waiting for that takes too long."""
    with store.read() as tx:
        last = tx.one(_select_max_id(rows), {})
    if not wait_for_writers(store, rows, MAX_WRITER_WAIT_SECONDS):
        return 0
    return 0 if last is None or last[0] is None else last[0]


def wait_for_writers(store: Store, rows: Table, seconds: float) -> bool:
    """Wait for the transactions that write to a table now; False if that takes too long.

    Transactions that begin later get higher ids.
    """
    writers = active_writers(store, rows)
    return not writers or poll_until(
        lambda: writers.isdisjoint(active_writers(store, rows)), seconds, WRITER_POLL_SECONDS
    )


def active_writers(store: Store, rows: Table) -> frozenset[str]:
    """The transactions that may have written rows which are not visible yet."""
    if store.dialect == "sqlite":
        return frozenset()
    with store.read() as tx:
        return frozenset(each for (each,) in tx.all(_select_active_writers(rows), {}))


@cache
def _select_max_id(rows: Table) -> Statement[tuple[int | None]]:
    return Statement(lambda: select(func.max(rows.c.id)))


@cache
def _select_active_writers(rows: Table) -> Statement[tuple[str]]:
    # Other databases of the server may have a table of the same number.
    return Statement(
        lambda: select(_locks().c.virtualtransaction).where(
            text(f"relation = '{rows.name}'::regclass AND mode = 'RowExclusiveLock' AND granted"),
            text("database = (SELECT oid FROM pg_database WHERE datname = current_database())"),
        )
    )


def _locks() -> TableClause:
    return table("pg_locks", column("virtualtransaction", Text), column("relation", BigInteger))
