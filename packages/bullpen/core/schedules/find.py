"""Schedules as they are looked for: one by its id or label, or all of somebody's."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, or_, select

from bullpen.core.errors import UnknownSchedule
from bullpen.core.models.base import const
from bullpen.core.schedules.columns import S, ScheduleTuple, columns, schedule_from_row
from bullpen.core.schedules.schedule import Schedule, ScheduleState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

# An id comes before another's label that reads the same.
LOCK_SCHEDULE: Statement[ScheduleTuple] = Statement(
    lambda: (
        select(*columns())
        .where(or_(S.id == bindparam("name"), S.label == bindparam("name")))
        .order_by(S.id != bindparam("name"))
        .with_for_update()
    )
)
SELECT_SCHEDULE: Statement[ScheduleTuple] = Statement(
    lambda: (
        select(*columns())
        .where(or_(S.id == bindparam("name"), S.label == bindparam("name")))
        .order_by(S.id != bindparam("name"))
    )
)
SELECT_SCHEDULES: Statement[ScheduleTuple] = Statement(
    lambda: select(*columns()).order_by(S.created_at, S.id)
)
SELECT_NEXT_DUE: Statement[tuple[int]] = Statement(
    lambda: (
        select(S.due_at)
        .where(S.state == const(ScheduleState.ACTIVE.value), S.due_at.is_not(None))
        .order_by(S.due_at)
        .limit(const(1))
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """What the schedules have in common; None is anything."""

    agent: str | None = None
    team_id: str | None = None
    made_by: str | None = None
    state: ScheduleState | None = None

    def matches(self, schedule: Schedule) -> bool:
        """Whether this one is wanted."""
        return (
            self.agent in (None, schedule.agent)
            and self.team_id in (None, schedule.team_id)
            and self.made_by in (None, schedule.made_by)
            and self.state in (None, schedule.state)
        )


ALL_SCHEDULES = ScheduleFilter()


def get_schedule(tx: Transaction, name: str) -> Schedule:
    """The schedule of this id or label."""
    return _get_schedule(tx, SELECT_SCHEDULE, name)


def lock_schedule(tx: Transaction, name: str) -> Schedule:
    """The same, to be changed by nobody else until the transaction ends."""
    return _get_schedule(tx, LOCK_SCHEDULE, name)


def list_schedules(tx: Transaction, wanted: ScheduleFilter = ALL_SCHEDULES) -> list[Schedule]:
    """Those that are wanted, the oldest first."""
    return [
        each
        for each in map(schedule_from_row, tx.all(SELECT_SCHEDULES, {}))
        if wanted.matches(each)
    ]


def next_due(tx: Transaction) -> int | None:
    """When the next of all is due."""
    row = tx.one(SELECT_NEXT_DUE, {})
    return None if row is None else row[0]


def _get_schedule(tx: Transaction, statement: Statement[ScheduleTuple], name: str) -> Schedule:
    check_text(name, tx.settings.message_bytes, "the schedule's name")
    row = tx.one(statement, {"name": name})
    if row is None:
        raise UnknownSchedule(f"there is no schedule {name[:60]!r}")
    return schedule_from_row(row)
