"""Where in a growing table a moment is. Its times are as good as in order; the rest is a margin."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Table, bindparam, func, select

from bullpen.core.clock import MINUTE
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction


def first_id_since(tx: Transaction, table: Table, moment: int) -> int:
    """A number before that of every row of this moment or of a later one, by their `created_at`.

    Each look halves what is left of the table, however large that is.
    """
    ends = tx.one(_id_range(table), {})
    if ends is None or ends[0] is None or ends[1] is None:
        return 0
    low, high = ends[0] - 1, ends[1] + 1
    # A row that was under way for a while has a later number than its moment says.
    early = moment - MINUTE
    while high - low > 1:
        middle = (low + high) // 2
        row = tx.one(_row_from_id(table), {"number": middle})
        if row is None or row[1] >= early:
            high = middle
        else:
            low = row[0]
    return low


@cache
def _id_range(table: Table) -> Statement[tuple[int | None, int | None]]:
    first, last = (select(end(table.c.id)).scalar_subquery() for end in (func.min, func.max))
    return Statement(lambda: select(first, last))


@cache
def _row_from_id(table: Table) -> Statement[tuple[int, int]]:
    return Statement(
        lambda: (
            select(table.c.id, table.c.created_at)
            .where(table.c.id >= bindparam("number"))
            .order_by(table.c.id)
            .limit(const(1))
        )
    )
