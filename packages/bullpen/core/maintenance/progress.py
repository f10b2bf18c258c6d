"""Deletes what runs said of their progress: the answer is kept, how it came about is not."""

from __future__ import annotations

from sqlalchemy import Select, bindparam, delete, func, select

from bullpen.core.clock import HOUR
from bullpen.core.events.append import EventType
from bullpen.core.maintenance.batches import PAUSE_FACTOR, in_batches
from bullpen.core.models import EVENTS
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

E = EVENTS.c

BATCH = 500

# The newest event stays: SQLite would give its id again.


def _old_progress() -> Select[int]:
    return (
        select(E.id)
        .where(
            E.type == const(EventType.AGENT_PROGRESS.value),
            E.created_at <= bindparam("before"),
            E.id < select(func.max(EVENTS.alias().c.id)).scalar_subquery(),
        )
        .order_by(E.created_at)
        .limit(const(BATCH))
    )


DELETE_PROGRESS: Statement[None] = Statement(
    lambda: delete(EVENTS).where(E.id.in_(_old_progress().scalar_subquery()))
)


def delete_progress_batch(tx: Transaction) -> int:
    """Delete one batch; gives how many."""
    return tx.change(DELETE_PROGRESS, {"before": tx.now - tx.settings.retention_hours * HOUR})


def delete_progress(store: Store) -> str:
    """Delete all that is old."""
    return f"{in_batches(store, delete_progress_batch, PAUSE_FACTOR)} deleted"
