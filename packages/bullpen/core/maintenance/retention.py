"""Retention: what is archived or deleted, and after how long."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from sqlalchemy import (
    Delete,
    Insert,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
)

from bullpen.core.clock import DAY, HOUR
from bullpen.core.events.log import EventType
from bullpen.core.models import (
    AGENT_MESSAGES,
    ATTEMPTS,
    BEATS,
    CHAT_MESSAGES,
    DEATH_CAUSES,
    EVENTS,
    MESSAGES,
    MESSAGES_ARCHIVE,
    RECEIPTS,
    RESPONSES,
    RESPONSES_ARCHIVE,
    SCHEDULE_RUNS,
    SCHEDULES,
)
from bullpen.core.models.base import const
from bullpen.core.schedules.model import ScheduleState
from bullpen.core.states import ARCHIVED_STATES, ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.paging import JsonIn, encode_ids
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

MAX_BATCHES = 1000
"""Batches in one run of a loop; what is left is for the next."""

PAUSE_FACTOR = 9.0
"""So many times as long as a batch took is the pause after it, if the work can wait."""
MAX_PAUSE_SECONDS = 1.0


def in_batches(store: Store, step: Callable[[Transaction], int], rest: float = 0.0) -> int:
    """Repeat the step, each time in a transaction of its own, until it finds nothing.

    Where others write as well, a batch takes longer, and so does the pause.
    """
    total = 0
    for _ in range(MAX_BATCHES):
        began = time.monotonic()
        with store.write(durable=False) as tx:
            count = step(tx)
        total += count
        if count == 0:
            break
        time.sleep(min(rest * (time.monotonic() - began), MAX_PAUSE_SECONDS))
    return total


# Finished messages and delivered responses leave for the archive tables after a day.
#
# In batches of 500, each a transaction of its own, with a pause, so that a writer waits for
# milliseconds, and seldom. The newest row of a table stays: SQLite would give its id again.

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


# Deletes the old rows of tables that only grow, and have no index on time: nor do they need one.
#
# Ids grow with time: so the lowest are looked at, and those of them that are old are deleted.


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


OLD_ATTEMPTS = RetentionRule(ATTEMPTS, "finished_at")


def delete_attempts(store: Store) -> str:
    """Delete all that is older than `attempt_days`."""
    return f"{OLD_ATTEMPTS.forget(store, store.settings.attempt_days)} deleted"


OLD_SCHEDULE_RUNS = RetentionRule(SCHEDULE_RUNS, "fired_at")
OLD_HEARTBEAT_RUNS = RetentionRule(BEATS, "fired_at")


# There are few, and no index is worth its while.
DELETE_DONE_SCHEDULES: Statement[None] = Statement(
    lambda: delete(SCHEDULES).where(
        SCHEDULES.c.state == const(ScheduleState.DONE.value), SCHEDULES.c.at <= bindparam("before")
    )
)


def delete_schedule_history(store: Store) -> str:
    """Delete all that is older than `schedule_days`."""
    days = store.settings.schedule_days
    runs, beats = OLD_SCHEDULE_RUNS.forget(store, days), OLD_HEARTBEAT_RUNS.forget(store, days)
    return f"{runs} runs, {beats} beats, {_delete_done_schedules(store, days)} schedules deleted"


def _delete_done_schedules(store: Store, days: int) -> int:
    if days == 0:
        return 0
    with store.write(durable=False) as tx:
        return tx.change(DELETE_DONE_SCHEDULES, {"before": tx.now - days * DAY})


OLD_EVENTS = RetentionRule(EVENTS, "created_at")

# A row for each cause: there are few.
DELETE_OLD_CAUSES: Statement[None] = Statement(
    lambda: delete(DEATH_CAUSES).where(DEATH_CAUSES.c.last_at <= bindparam("before"))
)


def delete_events(store: Store) -> str:
    """Delete all that is older than `event_days`."""
    days = store.settings.event_days
    deleted = OLD_EVENTS.forget(store, days)
    causes = 0
    if days:
        with store.write(durable=False) as tx:
            causes = tx.change(DELETE_OLD_CAUSES, {"before": tx.now - days * DAY})
    return f"{deleted} events, {causes} causes of death deleted"


OLD_AGENT_MESSAGES = RetentionRule(AGENT_MESSAGES, "created_at")
OLD_CHAT_MESSAGES = RetentionRule(CHAT_MESSAGES, "created_at")


def delete_history(store: Store) -> str:
    """Delete all that is older than `history_days`."""
    days = store.settings.history_days
    return f"{OLD_AGENT_MESSAGES.forget(store, days)} said, {OLD_CHAT_MESSAGES.forget(store, days)} posts deleted"


E = EVENTS.c


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


C = RECEIPTS.c


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
