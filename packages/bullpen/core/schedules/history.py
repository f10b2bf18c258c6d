"""What became of a schedule's runs: how each ended, what it cost, and whether it arrived."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from sqlalchemy import bindparam, insert, select

from bullpen.core.models import SCHEDULE_RUNS
from bullpen.core.models.archive import MESSAGE_TABLES, RESPONSE_TABLES, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.queue.conversations import conversation_totals
from bullpen.core.schedules.model import Schedule
from bullpen.core.schedules.timing import Timing
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

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
    """What became of a due time."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class RunDelivery:
    """An answer on its way: `acked` is there, with what the platform said of each part."""

    response: int
    channel: str
    status: str
    receipts: tuple[str, ...]
    acked_at: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """What became of a due time, or of several that were missed; first the fields of its row."""

    id: int
    due_at: int | None
    """None of a run that somebody asked for."""
    until: int | None
    fired_at: int
    outcome: str
    times: int
    message_id: str | None
    reason: str | None
    state: str | None = None
    """Of its message; None if there is none, or none any more."""
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
    """Append it; a due time that is there already ends the transaction."""
    values: dict[str, object] = {"schedule_id": schedule.id, "due_at": due, "until": until}
    values.update(fired_at=tx.now, outcome=outcome.value, times=times)
    tx.write(INSERT_RUN, {**values, "message_id": message_id, "reason": reason})


def is_recorded(tx: Transaction, schedule: Schedule, due: int) -> bool:
    """Whether something became of this due time already."""
    return tx.one(SELECT_RECORDED, {"schedule": schedule.id, "due": due}) is not None


def list_schedule_runs(
    tx: Transaction, schedule_id: str, since: int | None, limit: int, upto: int = MAX_ROW_ID
) -> list[ScheduleRun]:
    """Those of a schedule after this number and up to another; without one the newest first."""
    runs = RUN_LISTING.page(tx, {"schedule_id": schedule_id}, since, limit, upto)
    return [_with_result(tx, run) for run in runs]


def next_due_times(schedule: Schedule, now: int, count: int = 5) -> list[int]:
    """When it is due next; of one that is paused, when it would be."""
    start = now if schedule.due_at is None else schedule.due_at - 1
    return list(_times(schedule.timing, start, count))


@lru_cache(maxsize=10_000)
def _times(timing: Timing, start: int, count: int) -> tuple[int, ...]:
    """Of one that is active they are the same until it has fired."""
    return tuple(islice(timing.due_times_after(start), count))


def _with_result(tx: Transaction, run: ScheduleRun) -> ScheduleRun:
    if run.message_id is None:
        return run
    asked = {"message": run.message_id}
    state = tx.one(SELECT_STATE, asked)
    totals = conversation_totals(tx, run.message_id)
    return replace(
        run,
        state=None if state is None else state[0],
        error=None if state is None else state[1],
        cost=totals.cost,
        tokens=totals.tokens,
        deliveries=tuple(_delivery(row) for row in sorted(tx.all(SELECT_RESPONSES, asked))),
    )


def _delivery(row: tuple[int, str, str, str | None, int | None, str | None]) -> RunDelivery:
    response, channel, status, receipts, acked_at, error = row
    taken = tuple(str(each) for each in json.loads(receipts or "[]"))
    return RunDelivery(response, channel, status, taken, acked_at, error)
