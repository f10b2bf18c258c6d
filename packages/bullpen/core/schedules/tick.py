"""What a scheduler does again and again: it looks for due schedules and lets each fire."""

from __future__ import annotations

import logging

from sqlalchemy import bindparam, select

from bullpen.core.clock import seconds_until
from bullpen.core.errors import StoreError
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.schedules.columns import S, ScheduleTuple, columns, schedule_from_row
from bullpen.core.schedules.find import lock_schedule, next_due
from bullpen.core.schedules.fire import fire_schedule
from bullpen.core.schedules.plan import MissedPolicy, plan_fire
from bullpen.core.schedules.schedule import Schedule, ScheduleState
from bullpen.core.schedules.stop import pause_and_notify
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

log = logging.getLogger(__name__)

BATCH_SCHEDULES = 100
SELECT_DUE: Statement[ScheduleTuple] = Statement(
    lambda: (
        select(*columns())
        .where(S.state == const(ScheduleState.ACTIVE.value), S.due_at <= bindparam("now"))
        .order_by(S.due_at)
        .limit(const(BATCH_SCHEDULES))
    )
)


def fire_due_schedules(store: Store) -> float:
    """Let everything fire that is due; gives how many seconds there is nothing to do."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return seconds_until(None, tx.now)
        due = [schedule_from_row(row) for row in tx.all(SELECT_DUE, {"now": tx.now})]
        now, following = tx.now, None if due else next_due(tx)
    if not due:
        return seconds_until(following, now)
    for schedule in due:
        _fire_or_pause(store, schedule, now, schedule.missed)
    return 0.0


def skip_missed(store: Store) -> int:
    """Account for every due time that has passed as missed, and make up for none of them.

    Gives how many schedules it was. What is due within this minute fires, as it always does.
    """
    total = 0
    while True:
        with store.read() as tx:
            now, due = (
                tx.now,
                [schedule_from_row(row) for row in tx.all(SELECT_DUE, {"now": tx.now})],
            )
        if not due:
            return total
        for schedule in due:
            _fire_or_pause(store, schedule, now, MissedPolicy.SKIP)
        total += len(due)


def _fire_or_pause(store: Store, schedule: Schedule, now: int, missed: MissedPolicy) -> None:
    """One that cannot be decided is paused, so that no other waits behind it."""
    assert schedule.due_at is not None
    try:
        decided = plan_fire(schedule.timing, schedule.due_at, now, missed)
        with store.write() as tx:
            fire_schedule(tx, schedule, decided)
    except StoreError:
        raise
    except Exception as error:
        log.exception("the schedule %s cannot fire", schedule.id)
        with store.write() as tx:
            current = lock_schedule(tx, schedule.id)
            if current == schedule:
                pause_and_notify(tx, current, f"it cannot fire: {str(error)[:500]}")
