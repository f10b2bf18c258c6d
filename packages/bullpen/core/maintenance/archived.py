"""Deletes archived messages and responses for good. Their ids may then be used anew by clients."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Delete, Table, bindparam, delete, select

from bullpen.core.clock import DAY
from bullpen.core.maintenance.batches import PAUSE_FACTOR, in_batches
from bullpen.core.models import MESSAGES_ARCHIVE, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

BATCH = 500


def _delete_older(table: Table, at: str) -> Statement[None]:
    def made() -> Delete:
        number, moment = table.c.id, table.c[at]
        first = (
            select(number)
            .where(moment <= bindparam("old"))
            .order_by(moment, number)
            .limit(const(BATCH))
        )
        return delete(table).where(number.in_(first.scalar_subquery()))

    return Statement(made)


DELETE_ARCHIVED_MESSAGES = _delete_older(MESSAGES_ARCHIVE, "updated_at")
DELETE_ARCHIVED_RESPONSES = _delete_older(RESPONSES_ARCHIVE, "acked_at")


def delete_archived(store: Store) -> str:
    """Delete all that was finished longer than `archive_days` ago."""
    if store.settings.archive_days == 0:
        return "kept for ever"
    messages, responses = (
        in_batches(store, partial(_delete_archived_batch, statement=each), PAUSE_FACTOR)
        for each in (DELETE_ARCHIVED_MESSAGES, DELETE_ARCHIVED_RESPONSES)
    )
    return f"{messages} messages, {responses} responses deleted"


def _delete_archived_batch(tx: Transaction, statement: Statement[None]) -> int:
    return tx.change(statement, {"old": tx.now - tx.settings.archive_days * DAY})
