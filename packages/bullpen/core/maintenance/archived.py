"""Deletes archived messages and responses for good. Their ids may then be used anew by clients."""

from __future__ import annotations

from functools import partial

from sqlalchemy import Delete, Table, bindparam, delete, select

from bullpen.core.clock import DAY
from bullpen.core.maintenance.batches import REST, in_batches
from bullpen.core.models import ARCHIVE, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

BATCH = 500


def _old(table: Table, at: str) -> Statement[None]:
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


OLD_MESSAGES = _old(ARCHIVE, "updated_at")
OLD_RESPONSES = _old(RESPONSES_ARCHIVE, "acked_at")


def archived(store: Store) -> str:
    """Delete all that was finished longer than `archive_days` ago."""
    if store.settings.archive_days == 0:
        return "kept for ever"
    messages, responses = (
        in_batches(store, partial(_delete, statement=each), REST)
        for each in (OLD_MESSAGES, OLD_RESPONSES)
    )
    return f"{messages} messages, {responses} responses deleted"


def _delete(tx: Transaction, statement: Statement[None]) -> int:
    return tx.change(statement, {"old": tx.now - tx.settings.archive_days * DAY})
