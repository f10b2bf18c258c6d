"""Guard: the facts on the disk are from this store, and from before its present.

After the restore of an older backup the ids are given again, to other rows. The last landed row of
each table shows it: it is gone, or has other contents.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Table, bindparam, select

from bullpen.core.errors import StoreReplaced
from bullpen.core.models import ATTEMPTS, EVENTS
from bullpen.core.store.base import Store
from bullpen.core.store.identity import store_id
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.reports.facts.position import last_id
from bullpen.reports.facts.tables import find_table
from bullpen.reports.manifest import FactTableState, Manifest

STORED: Mapping[str, Table] = {"attempts": ATTEMPTS, "events": EVENTS}
"""The tables of the store whose rows are landed."""


def check_store(store: Store, manifest: Manifest) -> None:
    """Raise StoreReplaced if the landed facts are not those of the store."""
    with store.read() as tx:
        found = store_id(tx)
    if found != manifest.store:
        raise StoreReplaced("the reports are about another database")
    for name, state in manifest.facts.items():
        if not _has_same_row(store, name, state):
            raise StoreReplaced(
                f"row {last_landed(state)} of {name} has changed since the last run:"
                " a backup was restored"
            )


def last_landed(state: FactTableState) -> int:
    """The highest id in the files; 0 if there are none."""
    return max((each.last for each in state.files), default=0)


def row_key(tx: Transaction, table: str, row_id: int) -> str:
    """The contents by which a row is recognised; empty if there is no such row."""
    row = tx.one(_SELECT_KEY[table], {"id": row_id})
    return "" if row is None else f"{row[0]} {row[1]}"


def _has_same_row(store: Store, name: str, state: FactTableState) -> bool:
    last, table = last_landed(state), find_table(name)
    with store.read() as tx:
        found = row_key(tx, name, last)
    if found:
        return found == state.last_key
    # Retention deletes old rows, and keeps the newest one.
    return last == 0 or last_id(store, table) >= state.upto


def _select_key(table: Table, time: str) -> Statement[tuple[str | None, int]]:
    return Statement(
        lambda: select(table.c.message_id, table.c[time]).where(table.c.id == bindparam("id"))
    )


_SELECT_KEY = {name: _select_key(table, find_table(name).time) for name, table in STORED.items()}
