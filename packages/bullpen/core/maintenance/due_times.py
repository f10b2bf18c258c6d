"""Deletes the record of what was due long ago: the runs of schedules, and beats."""

from __future__ import annotations

from bullpen.core.maintenance.old import Old
from bullpen.core.models import BEATS, SCHEDULE_RUNS
from bullpen.core.store.base import Store

RUNS = Old(SCHEDULE_RUNS, SCHEDULE_RUNS.c.fired_at)
OLD_BEATS = Old(BEATS, BEATS.c.fired_at)


def due_times(store: Store) -> str:
    """Delete all that is older than `schedule_days`."""
    days = store.settings.schedule_days
    return f"{RUNS.forget(store, days)} runs, {OLD_BEATS.forget(store, days)} beats deleted"
