"""Deletes the old rows of tables that only grow, and have no index on time: nor do they need one.

Ids grow with time: so the lowest are looked at, and those of them that are old are deleted.
"""

from __future__ import annotations

from sqlalchemy import Delete, Select, Table, bindparam, delete, func, select

from bullpen.core.clock import DAY
from bullpen.core.maintenance.batches import PAUSE_FACTOR, in_batches
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

BATCH = 500


class RetentionRule:
    """The old rows of one table, by the column that says when each was written."""

    def __init__(self, table: Table, at: str) -> None:
        self._table = table
        self._at = at
        self._upto: Statement[tuple[int | None]] = Statement(self._highest)
        self._delete: Statement[None] = Statement(self._older)

    def _highest(self) -> Select[int]:
        number = self._table.c.id
        lowest = select(number).order_by(number).limit(const(BATCH)).subquery()
        return select(func.max(lowest.c.id))

    def _older(self) -> Delete:
        number = self._table.c.id
        return delete(self._table).where(
            number <= bindparam("upto"),
            self._table.c[self._at] <= bindparam("before"),
            # The newest stays: SQLite would give its id again.
            number < select(func.max(self._table.alias().c.id)).scalar_subquery(),
        )

    def forget(self, store: Store, days: int) -> int:
        """Delete what is older than so many days, batch by batch; 0 is for ever."""
        if days == 0:
            return 0

        def batch(tx: Transaction) -> int:
            row = tx.one(self._upto, {})
            if row is None or row[0] is None:
                return 0
            return tx.change(self._delete, {"upto": row[0], "before": tx.now - days * DAY})

        return in_batches(store, batch, PAUSE_FACTOR)
