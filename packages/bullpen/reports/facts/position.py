"""Position: which ids of a fact table can be read, and how they are cut into ranges.

A reader that continues after its last id would lose every row with a lower id that commits later.
`committed_up_to` gives the id below which nothing is still to commit. On PostgreSQL it rests on:

* The highest id is read before the list of writers. A writer that is not in the list began later
  and draws higher ids, or it has ended and its rows are visible.
* A writer locks the table before it draws an id, because an INSERT does both in this order.
* The sequences have a cache of 1. With a larger one, a connection could use an id that it drew
  long ago.
* The primary is asked: a standby replays commits, and its list of locks has no writers.

SQLite has one writer at a time, and rows appear in the order of their ids.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import BigInteger, Select, bindparam, func, select

from bullpen.core.errors import StoreBusy, StoreReadOnly
from bullpen.core.models import ATTEMPTS, EVENTS
from bullpen.core.models.archive import MESSAGE_TABLES, RESPONSE_TABLES, live_and_archived
from bullpen.core.store.base import Store
from bullpen.core.store.committed import MAX_WRITER_WAIT_SECONDS, wait_for_writers
from bullpen.core.store.statement import Statement
from bullpen.reports.facts.read import RANGE_ROWS, IdRange
from bullpen.reports.facts.tables import FactTable

_STORED = {
    "attempts": (ATTEMPTS,),
    "events": (EVENTS,),
    "messages": MESSAGE_TABLES,
    "responses": RESPONSE_TABLES,
}
"""The tables of the store that have the rows of a fact table; rows are inserted in the first."""


def find_committed(store: Store, table: FactTable, seconds: float = MAX_WRITER_WAIT_SECONDS) -> int:
    """The id up to which all rows are committed; 0 in an empty table.

    Raises StoreBusy if a transaction that writes to the table takes longer.
    """
    if store.dialect == "postgresql":
        with store.read() as tx:
            if tx.fetch("SELECT pg_is_in_recovery()") == (True,):
                raise StoreReadOnly(
                    "the database is a standby, which does not know what is still to commit",
                    hint="Use the URL of the primary.",
                )
    last = last_id(store, table)
    if not wait_for_writers(store, _STORED[table.name][0], seconds):
        raise StoreBusy(
            f"a transaction has been writing to {table.name} for more than {seconds:g} s",
            hint="Try again when it has ended.",
        )
    return last


def last_id(store: Store, table: FactTable) -> int:
    """The highest visible id; 0 in an empty table."""
    with store.read() as tx:
        row = tx.one(_select_last(table.name), {})
    return 0 if row is None or row[0] is None else row[0]


def next_id(store: Store, table: FactTable, first: int) -> int | None:
    """The lowest visible id from `first` on; None if there is none."""
    with store.read() as tx:
        row = tx.one(_select_next(table.name), {"first": first})
    return None if row is None else row[0]


def cut_ranges(
    store: Store, table: FactTable, first: int, last: int, rows: int = RANGE_ROWS
) -> list[IdRange]:
    """Cut the rows from `first` to `last` into ranges of at most so many rows, none empty.

    Ids have gaps where rows were deleted; a range begins with a row that exists.
    """
    ranges: list[IdRange] = []
    begin = next_id(store, table, first)
    while begin is not None and begin <= last:
        end = min(begin + rows - 1, last)
        ranges.append(IdRange(begin, end))
        begin = next_id(store, table, end + 1)
    return ranges


@cache
def _select_last(name: str) -> Statement[tuple[int | None]]:
    def build() -> Select[tuple[int]]:
        ids = live_and_archived(_STORED[name], lambda each: select(func.max(each.c.id).label("id")))
        return select(func.max(ids.subquery().c.id))

    return Statement(build)


@cache
def _select_next(name: str) -> Statement[tuple[int | None]]:
    first = bindparam("first", type_=BigInteger)

    def build() -> Select[tuple[int]]:
        ids = live_and_archived(
            _STORED[name],
            lambda each: select(func.min(each.c.id).label("id")).where(each.c.id >= first),
        )
        return select(func.min(ids.subquery().c.id))

    return Statement(build)
