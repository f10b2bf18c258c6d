"""Finished messages and delivered responses leave for the archive tables after a day.

In batches of 500, each a transaction of its own, with a pause, so that a writer waits for
milliseconds, and seldom. The newest row of a table stays: SQLite would give its id again.
"""

from __future__ import annotations

from sqlalchemy import Insert, Table, bindparam, delete, func, insert, select

from bullpen.core.clock import HOUR
from bullpen.core.maintenance.batches import PAUSE_FACTOR, in_batches
from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE, RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.states import ARCHIVED_STATES, ResponseState
from bullpen.core.store.among import JsonIn, encode_ids
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

BATCH = 500

M = MESSAGES.c
R = RESPONSES.c

FINISHED_MESSAGES: Statement[tuple[int]] = Statement(
    lambda: (
        select(M.id)
        .where(
            M.status.in_([const(state.value) for state in ARCHIVED_STATES]),
            M.updated_at <= bindparam("before"),
        )
        .order_by(M.updated_at, M.id)
        .limit(const(BATCH))
        .with_for_update(skip_locked=True)
    )
)

DELIVERED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.status == const(ResponseState.ACKED.value),
            R.acked_at <= bindparam("before"),
            R.id < select(func.max(RESPONSES.alias().c.id)).scalar_subquery(),
        )
        .order_by(R.acked_at, R.id)
        .limit(const(BATCH))
    )
)


def _copy_rows(source: Table, target: Table) -> Statement[None]:
    def made() -> Insert:
        names = [column.name for column in source.c]
        rows = select(*(source.c[name] for name in names)).where(JsonIn(source.c.id, "rows"))
        return insert(target).from_select(names, rows)

    return Statement(made)


def _delete_rows(source: Table) -> Statement[None]:
    return Statement(lambda: delete(source).where(JsonIn(source.c.id, "rows")))


ARCHIVE_MESSAGES, DELETE_MESSAGES = _copy_rows(MESSAGES, MESSAGES_ARCHIVE), _delete_rows(MESSAGES)
ARCHIVE_RESPONSES, DELETE_RESPONSES = (
    _copy_rows(RESPONSES, RESPONSES_ARCHIVE),
    _delete_rows(RESPONSES),
)


def archive_messages(tx: Transaction) -> int:
    """Move one batch of messages that have been finished for long enough; gives how many."""
    return _archive_batch(tx, FINISHED_MESSAGES, ARCHIVE_MESSAGES, DELETE_MESSAGES)


def archive_responses(tx: Transaction) -> int:
    """Move one batch of responses that were delivered long enough ago; gives how many."""
    return _archive_batch(tx, DELIVERED_RESPONSES, ARCHIVE_RESPONSES, DELETE_RESPONSES)


def archive_finished(store: Store) -> str:
    """Move all that is due, batch by batch."""
    messages, responses = (
        in_batches(store, each, PAUSE_FACTOR) for each in (archive_messages, archive_responses)
    )
    return f"{messages} messages, {responses} responses"


def _archive_batch(
    tx: Transaction, old: Statement[tuple[int]], copy: Statement[None], remove: Statement[None]
) -> int:
    before = tx.now - tx.settings.retention_hours * HOUR
    rows = [id_ for (id_,) in tx.all(old, {"before": before})]
    if rows:
        tx.write(copy, {"rows": encode_ids(rows)})
        tx.write(remove, {"rows": encode_ids(rows)})
    return len(rows)
