"""Retention: which rows are archived or deleted, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
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
from bullpen.core.events.conversation import AgentProgress
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
    SENDERS,
)
from bullpen.core.models.base import const
from bullpen.core.schedules.model import ScheduleState
from bullpen.core.settings import Settings
from bullpen.core.states import ARCHIVED_STATES, ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.paging import JsonIn, encode_ids
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

BATCH_ROWS = 500
MAX_BATCHES = 1000
"""Batches in one run of a job; the next run continues."""

PAUSE_FACTOR = 9.0
"""The pause after a batch of low-priority work, as a multiple of the duration of the batch."""
MAX_PAUSE_SECONDS = 1.0

MIN_RECEIPT_DAYS = 7
"""Slack redelivers for hours, Twilio for a day; receipts must outlive every redelivery."""

MIN_UNPAIRED_DAYS = 30
"""People who asked for pairing and were not approved, or wrote in a group, are kept longer."""

M = MESSAGES.c
R = RESPONSES.c

RemoveBatch = Callable[[Transaction, int], int]
"""Removes one batch of rows that are at most as new as a moment; returns how many."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Which rows a maintenance job removes from one table, and when they are old enough."""

    job: str
    noun: str
    """The name of one row in the job's result."""
    setting: str
    """The setting with their retention; 0 days is forever."""
    remove: RemoveBatch
    min_value: int = 0

    def max_age(self, settings: Settings) -> int | None:
        """In milliseconds; None for rows that are kept forever."""
        value: int = max(self.min_value, getattr(settings, self.setting))
        if self.setting.endswith("_hours"):
            return value * HOUR
        return value * DAY or None

    def remove_batch(self, tx: Transaction) -> int:
        """Remove one batch of the rows that are old enough; returns how many."""
        max_age = self.max_age(tx.settings)
        return 0 if max_age is None else self.remove(tx, tx.now - max_age)


def run_retention(store: Store, job: str) -> str:
    """Apply the rules of a job to all rows that are old enough, batch by batch."""
    rules = [rule for rule in RULES if rule.job == job]
    if all(rule.max_age(store.settings) is None for rule in rules):
        return "kept forever"
    counts = [in_batches(store, rule.remove_batch, PAUSE_FACTOR) for rule in rules]
    counted = (format_count(count, rule.noun) for count, rule in zip(counts, rules, strict=True))
    return f"{', '.join(counted)} {'archived' if job == 'archive' else 'deleted'}"


def in_batches(store: Store, step: Callable[[Transaction], int], pause_factor: float = 0.0) -> int:
    """Repeat a step, each time in its own transaction, until it returns 0; returns the sum.

    While other processes write, a batch takes longer, and so does the pause after it.
    """
    total = 0
    for _ in range(MAX_BATCHES):
        began = time.monotonic()
        with store.write(durable=False) as tx:
            count = step(tx)
        total += count
        if count == 0:
            break
        time.sleep(min(pause_factor * (time.monotonic() - began), MAX_PAUSE_SECONDS))
    return total


# How rows are removed. A batch takes milliseconds, so writers rarely wait for one. Where SQLite
# would reuse the id of a removed row, the newest row is kept.


def _move(
    rows: Statement[tuple[int]], copy: Statement[None], remove: Statement[None]
) -> RemoveBatch:
    """Moves the rows with these ids to another table."""

    def remove_batch(tx: Transaction, before: int) -> int:
        ids = [row_id for (row_id,) in tx.all(rows, {"before": before})]
        if ids:
            tx.write(copy, {"rows": encode_ids(ids)})
            tx.write(remove, {"rows": encode_ids(ids)})
        return len(ids)

    return remove_batch


def _copy_rows(source: Table, target: Table) -> Statement[None]:
    def build() -> Insert:
        names = [column.name for column in target.c]
        rows = select(*(source.c[name] for name in names)).where(JsonIn(source.c.id, "rows"))
        return insert(target).from_select(names, rows)

    return Statement(build)


def _delete_rows(source: Table) -> Statement[None]:
    return Statement(lambda: delete(source).where(JsonIn(source.c.id, "rows")))


def _delete(statement: Statement[None]) -> RemoveBatch:
    """Deletes the rows that one statement names."""
    return lambda tx, until: tx.change(statement, {"until": until})


def _delete_oldest(
    table: Table,
    order: Sequence[str],
    *,
    key: Sequence[str] = ("id",),
    where: Callable[[], Sequence[ColumnElement[bool]]] = tuple,
) -> Statement[None]:
    """Deletes by an index on time, which is the first column of the order."""

    def build() -> Delete:
        columns = [table.c[name] for name in key]
        oldest = (
            select(*columns)
            .where(*where(), table.c[order[0]] <= bindparam("until"))
            .order_by(*(table.c[name] for name in order))
            .limit(const(BATCH_ROWS))
        )
        row = columns[0] if len(columns) == 1 else tuple_(*columns)
        return delete(table).where(row.in_(oldest))

    return Statement(build)


def _delete_lowest(table: Table, at: str) -> RemoveBatch:
    """Deletes from a table without an index on time: of the lowest ids those that are old."""

    def highest() -> Select[int]:
        lowest = select(table.c.id).order_by(table.c.id).limit(const(BATCH_ROWS)).subquery()
        return select(func.max(lowest.c.id))

    def older() -> Delete:
        return delete(table).where(
            table.c.id <= bindparam("upto"),
            table.c[at] <= bindparam("before"),
            _is_not_newest(table),
        )

    select_upto: Statement[tuple[int | None]] = Statement(highest)
    delete_upto: Statement[None] = Statement(older)

    def remove_batch(tx: Transaction, before: int) -> int:
        row = tx.one(select_upto, {})
        if row is None or row[0] is None:
            return 0
        return tx.change(delete_upto, {"upto": row[0], "before": before})

    return remove_batch


def _is_not_newest(table: Table) -> ColumnElement[bool]:
    return table.c.id < select(func.max(table.alias().c.id)).scalar_subquery()


FINISHED_MESSAGES: Statement[tuple[int]] = Statement(
    lambda: (
        select(M.id)
        .where(
            M.status.in_([const(state.value) for state in ARCHIVED_STATES]),
            M.updated_at <= bindparam("before"),
        )
        .order_by(M.updated_at, M.id)
        .limit(const(BATCH_ROWS))
        .with_for_update(skip_locked=True)
    )
)

DELIVERED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.status == const(ResponseState.ACKED.value),
            R.acked_at <= bindparam("before"),
            _is_not_newest(RESPONSES),
        )
        .order_by(R.acked_at, R.id)
        .limit(const(BATCH_ROWS))
    )
)

COPY_MESSAGES, DELETE_MESSAGES = _copy_rows(MESSAGES, MESSAGES_ARCHIVE), _delete_rows(MESSAGES)
COPY_RESPONSES, DELETE_RESPONSES = _copy_rows(RESPONSES, RESPONSES_ARCHIVE), _delete_rows(RESPONSES)

DELETE_ARCHIVED_MESSAGES = _delete_oldest(MESSAGES_ARCHIVE, ("updated_at", "id"))
DELETE_ARCHIVED_RESPONSES = _delete_oldest(RESPONSES_ARCHIVE, ("acked_at", "id"))
DELETE_RECEIPTS = _delete_oldest(RECEIPTS, ("created_at",), key=("channel", "event_id"))
DELETE_UNPAIRED = _delete_oldest(
    SENDERS,
    ("last_at",),
    key=("channel", "sender_id"),
    where=lambda: (SENDERS.c.tier.is_(None),),
)
DELETE_PROGRESS = _delete_oldest(
    EVENTS,
    ("created_at",),
    where=lambda: (
        EVENTS.c.type == const(AgentProgress.type),
        _is_not_newest(EVENTS),
    ),
)

# These two tables are small: they need no index, and one statement deletes all old rows.
DELETE_DONE_SCHEDULES: Statement[None] = Statement(
    lambda: delete(SCHEDULES).where(
        SCHEDULES.c.state == const(ScheduleState.DONE.value), SCHEDULES.c.at <= bindparam("until")
    )
)
DELETE_OLD_CAUSES: Statement[None] = Statement(
    lambda: delete(DEATH_CAUSES).where(DEATH_CAUSES.c.last_at <= bindparam("until"))
)


ARCHIVE_MESSAGES = RetentionRule(
    "archive",
    "message",
    "retention_hours",
    _move(FINISHED_MESSAGES, COPY_MESSAGES, DELETE_MESSAGES),
)
ARCHIVE_RESPONSES = RetentionRule(
    "archive",
    "response",
    "retention_hours",
    _move(DELIVERED_RESPONSES, COPY_RESPONSES, DELETE_RESPONSES),
)

RULES = (
    ARCHIVE_MESSAGES,
    ARCHIVE_RESPONSES,
    RetentionRule("archived", "message", "archive_days", _delete(DELETE_ARCHIVED_MESSAGES)),
    RetentionRule("archived", "response", "archive_days", _delete(DELETE_ARCHIVED_RESPONSES)),
    RetentionRule("events", "event", "event_days", _delete_lowest(EVENTS, "created_at")),
    RetentionRule("events", "failure cause", "event_days", _delete(DELETE_OLD_CAUSES)),
    RetentionRule("progress", "progress event", "retention_hours", _delete(DELETE_PROGRESS)),
    RetentionRule("attempts", "run", "attempt_days", _delete_lowest(ATTEMPTS, "finished_at")),
    RetentionRule(
        "history", "message", "history_days", _delete_lowest(AGENT_MESSAGES, "created_at")
    ),
    RetentionRule(
        "history", "room post", "history_days", _delete_lowest(CHAT_MESSAGES, "created_at")
    ),
    RetentionRule(
        "due_times", "schedule run", "schedule_days", _delete_lowest(SCHEDULE_RUNS, "fired_at")
    ),
    RetentionRule("due_times", "heartbeat", "schedule_days", _delete_lowest(BEATS, "fired_at")),
    RetentionRule("due_times", "schedule", "schedule_days", _delete(DELETE_DONE_SCHEDULES)),
    RetentionRule(
        "receipts", "receipt", "receipt_days", _delete(DELETE_RECEIPTS), MIN_RECEIPT_DAYS
    ),
    RetentionRule(
        "receipts", "unpaired sender", "receipt_days", _delete(DELETE_UNPAIRED), MIN_UNPAIRED_DAYS
    ),
)
