"""How much was completed lately: counted up to a limit, so that it costs little at any size."""

from __future__ import annotations

from sqlalchemy import Subquery, func, select

from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.states import ARCHIVED_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c

MAX_COUNTED = 10_000


def _completed() -> Subquery:
    return (
        select(const(1).label("one"))
        .where(
            M.status == const(MessageState.COMPLETED.value),
            # Said once more, so that the index of the finished is recognised.
            M.status.in_([const(state.value) for state in ARCHIVED_STATES]),
        )
        .limit(const(MAX_COUNTED))
        .subquery()
    )


COUNT_COMPLETED: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).select_from(_completed())
)


def count_completed(tx: Transaction) -> int:
    """How many of the live messages are completed, up to MAX_COUNTED; older ones are in the archive."""
    row = tx.one(COUNT_COMPLETED, {})
    return 0 if row is None else row[0]
