"""Reads a growing table by its numbers without losing a row.

A number is given before its transaction commits, so that on PostgreSQL a lower one may appear after
a higher one: who has read the higher one would never ask for the lower. So: note the highest
number, wait for those who are writing just then, and read up to it. On SQLite one writes at a time.
"""

from __future__ import annotations

import time
from functools import cache

from sqlalchemy import BigInteger, Table, TableClause, Text, column, func, select, table, text

from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

MAX_WRITER_WAIT_SECONDS = 2.0
WRITER_POLL_SECONDS = 0.005


def _locks() -> TableClause:
    return table("pg_locks", column("virtualtransaction", Text), column("relation", BigInteger))


@cache
def _max_id(rows: Table) -> Statement[tuple[int | None]]:
    return Statement(lambda: select(func.max(rows.c.id)))


@cache
def _active_writers_statement(rows: Table) -> Statement[tuple[str]]:
    # Other databases of the server may have a table of the same number.
    return Statement(
        lambda: select(_locks().c.virtualtransaction).where(
            text(f"relation = '{rows.name}'::regclass AND mode = 'RowExclusiveLock' AND granted"),
            text("database = (SELECT oid FROM pg_database WHERE datname = current_database())"),
        )
    )


def committed_up_to(store: Store, rows: Table) -> int:
    """The number up to which every row is there, or never will be; 0 if that takes too long."""
    with store.read() as tx:
        last = tx.one(_max_id(rows), {})
    if store.dialect != "sqlite" and not _wait_for_writers(store, rows):
        return 0
    return 0 if last is None or last[0] is None else last[0]


def _wait_for_writers(store: Store, rows: Table) -> bool:
    """Wait for those who write to it now; whoever begins later gets a higher number."""
    begun = _active_writers(store, rows)
    deadline = time.monotonic() + MAX_WRITER_WAIT_SECONDS
    while begun:
        if time.monotonic() > deadline:
            return False
        time.sleep(WRITER_POLL_SECONDS)
        begun &= _active_writers(store, rows)
    return True


def _active_writers(store: Store, rows: Table) -> frozenset[str]:
    with store.read() as tx:
        return frozenset(each for (each,) in tx.all(_active_writers_statement(rows), {}))
