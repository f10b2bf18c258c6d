"""Forgets platform event ids that no platform repeats any more."""

from __future__ import annotations

from sqlalchemy import Select, bindparam, delete, select, tuple_

from bullpen.core.clock import DAY
from bullpen.core.maintenance.batches import PAUSE_FACTOR, in_batches
from bullpen.core.models import RECEIPTS
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

C = RECEIPTS.c

BATCH = 500
MIN_RECEIPT_DAYS = 7
"""Slack repeats for hours, Twilio for a day; a receipt must outlive every repeat and pruning."""


def _old_receipts() -> Select[str, str]:
    return (
        select(C.channel, C.event_id)
        .where(C.created_at <= bindparam("before"))
        .order_by(C.created_at)
        .limit(const(BATCH))
    )


DELETE_RECEIPTS: Statement[None] = Statement(
    lambda: delete(RECEIPTS).where(tuple_(C.channel, C.event_id).in_(_old_receipts()))
)


def delete_receipts_batch(tx: Transaction) -> int:
    """Delete one batch; gives how many."""
    days = max(MIN_RECEIPT_DAYS, tx.settings.receipt_days)
    return tx.change(DELETE_RECEIPTS, {"before": tx.now - days * DAY})


def delete_receipts(store: Store) -> str:
    """Delete all that are old."""
    return f"{in_batches(store, delete_receipts_batch, PAUSE_FACTOR)} forgotten"
