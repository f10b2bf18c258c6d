"""Deletes the record of what was due long ago: runs, beats, and schedules that are done."""

from __future__ import annotations

from sqlalchemy import bindparam, delete

from bullpen.core.clock import DAY
from bullpen.core.maintenance.old import RetentionRule
from bullpen.core.models import BEATS, SCHEDULE_RUNS, SCHEDULES
from bullpen.core.models.base import const
from bullpen.core.schedules.schedule import ScheduleState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

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
