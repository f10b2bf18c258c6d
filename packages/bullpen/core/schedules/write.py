"""A schedule's row: written, rewritten, deleted, and the event of it."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, delete, insert, update

from bullpen.core.events.append import EventType, append_event
from bullpen.core.models import SCHEDULES
from bullpen.core.schedules.columns import S, schedule_values
from bullpen.core.schedules.schedule import Schedule
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

_IMMUTABLE_COLUMNS = ("id", "made_by", "created_at")

INSERT_SCHEDULE: Statement[None] = Statement(
    lambda: insert(SCHEDULES).values(
        {column.name: bindparam(column.name) for column in SCHEDULES.c}
    )
)
UPDATE_SCHEDULE: Statement[None] = Statement(
    lambda: (
        update(SCHEDULES)
        .where(S.id == bindparam("schedule"))
        .values(
            {
                each.name: bindparam(each.name)
                for each in SCHEDULES.c
                if each.name not in _IMMUTABLE_COLUMNS
            }
        )
    )
)
DELETE_SCHEDULE: Statement[None] = Statement(
    lambda: delete(SCHEDULES).where(S.id == bindparam("schedule"))
)


def insert_schedule(tx: Transaction, schedule: Schedule) -> None:
    """Write a new one."""
    tx.write(INSERT_SCHEDULE, schedule_values(schedule))


def update_schedule(tx: Transaction, schedule: Schedule) -> Schedule:
    """Write what it is now."""
    # A tick that has read the row before must see that it is another: a moment alone may repeat.
    later = replace(schedule, updated_at=max(tx.now, schedule.updated_at + 1))
    tx.write(UPDATE_SCHEDULE, {**schedule_values(later), "schedule": schedule.id})
    return later


def delete_schedule(tx: Transaction, schedule: Schedule) -> None:
    """Delete it."""
    tx.write(DELETE_SCHEDULE, {"schedule": schedule.id})


def append_schedule_event(
    tx: Transaction, event: EventType, schedule: Schedule, **more: object
) -> None:
    """Record that this happened to it, and let the schedulers look anew."""
    more.update(schedule=schedule.id, label=schedule.label, team=schedule.team_id)
    append_event(tx, event, agent=schedule.agent, conversation_id=None, message_id=None, **more)
    tx.wake("schedules")
