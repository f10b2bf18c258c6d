"""The history of schedules: each run with its outcome, cost and deliveries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from sqlalchemy import bindparam, insert, select

from bullpen.core.models import SCHEDULE_RUNS
from bullpen.core.models.archive import MESSAGE_TABLES, RESPONSE_TABLES, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.outbox.parts import decode_receipts
from bullpen.core.queue.conversations import conversation_totals
from bullpen.core.schedules.model import Schedule
from bullpen.core.schedules.timing import Timing
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction, map_page

R = SCHEDULE_RUNS.c

_INSERTED_COLUMNS = (
    "schedule_id",
    "due_at",
    "until",
    "fired_at",
    "outcome",
    "times",
    "message_id",
    "reason",
)


class ScheduleOutcome(StrEnum):
    """The outcome of a due time."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class RunDelivery:
    """The delivery of an answer, with the platform's receipt for each part."""

    response: int
    channel: str
    status: str
    receipts: tuple[str, ...]
    acked_at: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """A run of a schedule, or several missed due times in one row; the fields of the row first."""

    id: int
    due_at: int | None
    """None if a person started the run."""
    until: int | None
    fired_at: int
    outcome: str
    times: int
    message_id: str | None
    reason: str | None
    state: str | None = None
    """The state of its message; None if there is none, or it was deleted."""
    error: str | None = None
    cost: float = 0.0
    tokens: int = 0
    deliveries: tuple[RunDelivery, ...] = ()


INSERT_RUN: Statement[None] = Statement(
    lambda: insert(SCHEDULE_RUNS).values({name: bindparam(name) for name in _INSERTED_COLUMNS})
)

SELECT_RECORDED: Statement[tuple[int]] = Statement(
    lambda: select(R.id).where(R.schedule_id == bindparam("schedule"), R.due_at == bindparam("due"))
)

SELECT_LAST_MESSAGE: Statement[tuple[str]] = Statement(
    lambda: (
        select(R.message_id)
        .where(R.schedule_id == bindparam("schedule"), R.message_id.is_not(None))
        .order_by(R.id.desc())
        .limit(const(1))
    )
)

RUN_LISTING = TablePager(SCHEDULE_RUNS, ScheduleRun)

SELECT_STATE: Statement[tuple[str, str | None]] = Statement(
    lambda: live_and_archived(
        MESSAGE_TABLES,
        lambda table: select(table.c.status, table.c.last_error).where(
            table.c.message_id == bindparam("message")
        ),
    )
)

SELECT_RESPONSES: Statement[tuple[int, str, str, str | None, int | None, str | None]] = Statement(
    lambda: live_and_archived(
        RESPONSE_TABLES,
        lambda table: select(
            *(table.c.id, table.c.channel, table.c.status),
            *(table.c.part_receipts, table.c.acked_at, table.c.last_error),
        ).where(table.c.message_id == bindparam("message")),
    )
)


def record_run(
    tx: Transaction,
    schedule: Schedule,
    due: int | None,
    outcome: ScheduleOutcome,
    *,
    until: int | None = None,
    times: int = 1,
    message_id: str | None = None,
    reason: str | None = None,
) -> None:
    """Record a run; the transaction fails if the due time is already recorded."""
    values: dict[str, object] = {"schedule_id": schedule.id, "due_at": due, "until": until}
    values.update(fired_at=tx.now, outcome=outcome.value, times=times)
    tx.write(INSERT_RUN, {**values, "message_id": message_id, "reason": reason})


def is_recorded(tx: Transaction, schedule: Schedule, due: int) -> bool:
    """Whether this due time is already recorded."""
    return tx.one(SELECT_RECORDED, {"schedule": schedule.id, "due": due}) is not None


def list_schedule_runs(
    tx: Transaction, schedule_id: str, since: int | None, limit: int, upto: int = MAX_ROW_ID
) -> list[ScheduleRun]:
    """The runs of a schedule after `since` and up to `upto`; without `since` newest first."""
    runs = RUN_LISTING.page(tx, {"schedule_id": schedule_id}, since, limit, upto)
    return map_page(runs, lambda run: _with_result(tx, run))


def next_due_times(schedule: Schedule, now: int, count: int = 5) -> list[int]:
    """The next due times; for a paused schedule, as if it were active."""
    start = now if schedule.due_at is None else schedule.due_at - 1
    return list(_times(schedule.timing, start, count))


@lru_cache(maxsize=10_000)
def _times(timing: Timing, start: int, count: int) -> tuple[int, ...]:
    """Cached: the due times stay the same until the schedule fires."""
    return tuple(islice(timing.due_times_after(start), count))


def _with_result(tx: Transaction, run: ScheduleRun) -> ScheduleRun:
    if run.message_id is None:
        return run
    values = {"message": run.message_id}
    state = tx.one(SELECT_STATE, values)
    totals = conversation_totals(tx, run.message_id)
    return replace(
        run,
        state=None if state is None else state[0],
        error=None if state is None else state[1],
        cost=totals.cost,
        tokens=totals.tokens,
        deliveries=tuple(_delivery(row) for row in sorted(tx.all(SELECT_RESPONSES, values))),
    )


def _delivery(row: tuple[int, str, str, str | None, int | None, str | None]) -> RunDelivery:
    response, channel, status, receipts, acked_at, error = row
    part_receipts = tuple(each.id for each in decode_receipts(receipts))
    return RunDelivery(response, channel, status, part_receipts, acked_at, error)
