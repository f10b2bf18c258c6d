"""A schedule: its fields, its row, and how it is found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypedDict

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from bullpen.core.errors import UnknownSchedule
from bullpen.core.events.append import append_event
from bullpen.core.events.schedule import ScheduleEvent
from bullpen.core.message import ReplyTo
from bullpen.core.models import SCHEDULES
from bullpen.core.models.base import const
from bullpen.core.outbox.addresses import DeliveryAddress
from bullpen.core.schedules.timing import MissedPolicy, Timing, TimingKind
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

S = SCHEDULES.c

DEFAULT_SENDER = "Scheduler"

OWNER_AUTHOR = "owner"
"""The author of a schedule that was created by neither an agent nor a key."""

AGENT_AUTHOR_PREFIX = "agent:"

KEY_AUTHOR_PREFIX = "key:"

_IMMUTABLE_COLUMNS = ("id", "made_by", "created_at")


class OverlapPolicy(StrEnum):
    """What to do at a due time while the previous run is unfinished."""

    SKIP = "skip"
    QUEUE = "queue"


class ScheduleState(StrEnum):
    """Whether a schedule fires."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    """No due times are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A new schedule, for an agent or for a team."""

    message: str
    timing: Timing
    agent: str | None = None
    team_id: str | None = None
    label: str | None = None
    place: DeliveryAddress
    sender: str = DEFAULT_SENDER
    missed: MissedPolicy = MissedPolicy.ONE
    overlap: OverlapPolicy = OverlapPolicy.SKIP
    jitter: int = 0
    """A random delay of up to this many milliseconds."""
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(NewSchedule):
    """A stored schedule."""

    id: str
    state: ScheduleState
    reason: str | None
    due_at: int | None
    made_by: str
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFilter:
    """Which schedules to list; None is any."""

    agent: str | None = None
    team_id: str | None = None
    made_by: str | None = None
    state: ScheduleState | None = None

    def matches(self, schedule: Schedule) -> bool:
        """Whether a schedule passes the filter."""
        return (
            self.agent in (None, schedule.agent)
            and self.team_id in (None, schedule.team_id)
            and self.made_by in (None, schedule.made_by)
            and self.state in (None, schedule.state)
        )


ALL_SCHEDULES = ScheduleFilter()


class ScheduleValues(TypedDict):
    """The fields that every event of a schedule has."""

    agent: str | None
    schedule: str
    label: str | None
    team: str | None


def schedule_from_row(
    id_: str,
    label: str | None,
    agent: str | None,
    team_id: str | None,
    message: str,
    kind: str,
    cron: str | None,
    every: int | None,
    at: int | None,
    zone: str,
    anchor: int,
    channel: str,
    sender: str,
    sender_id: str | None,
    reply_to: str | None,
    missed: str,
    overlap: str,
    jitter: int,
    state: str,
    reason: str | None,
    due_at: int | None,
    made_by: str,
    created_at: int,
    updated_at: int,
) -> Schedule:
    """The schedule of a row; the arguments are in the order of the columns."""
    return Schedule(
        id=id_,
        label=label,
        agent=agent,
        team_id=team_id,
        message=message,
        timing=Timing(
            kind=TimingKind(kind), cron=cron, every=every, at=at, zone=zone, anchor=anchor
        ),
        place=DeliveryAddress(
            channel, sender_id, None if reply_to is None else ReplyTo.parse(reply_to)
        ),
        sender=sender,
        missed=MissedPolicy(missed),
        overlap=OverlapPolicy(overlap),
        jitter=jitter,
        state=ScheduleState(state),
        reason=reason,
        due_at=due_at,
        made_by=made_by,
        created_at=created_at,
        updated_at=updated_at,
    )


def schedule_values(schedule: Schedule) -> dict[str, object]:
    """The values of its row."""
    timing, place = schedule.timing, schedule.place
    return {
        "id": schedule.id,
        "label": schedule.label,
        "agent": schedule.agent,
        "team_id": schedule.team_id,
        "message": schedule.message,
        "kind": timing.kind.value,
        "cron": timing.cron,
        "every": timing.every,
        "at": timing.at,
        "zone": timing.zone,
        "anchor": timing.anchor,
        "channel": place.channel,
        "sender": schedule.sender,
        "sender_id": place.sender_id,
        "reply_to": None if place.reply_to is None else str(place.reply_to),
        "missed": schedule.missed.value,
        "overlap": schedule.overlap.value,
        "jitter": schedule.jitter,
        "state": schedule.state.value,
        "reason": schedule.reason,
        "due_at": schedule.due_at,
        "made_by": schedule.made_by,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
    }


COUNT_BY_STATE: Statement[tuple[str, int]] = Statement(
    lambda: select(S.state, func.count()).group_by(S.state)
)

# An id comes before another's label that reads the same.
LOCK_SCHEDULE: Statement[Schedule] = Statement(
    lambda: (
        select(*S)
        .where(or_(S.id == bindparam("name"), S.label == bindparam("name")))
        .order_by(S.id != bindparam("name"))
        .with_for_update()
    ),
    schedule_from_row,
)

SELECT_SCHEDULE: Statement[Schedule] = Statement(
    lambda: (
        select(*S)
        .where(or_(S.id == bindparam("name"), S.label == bindparam("name")))
        .order_by(S.id != bindparam("name"))
    ),
    schedule_from_row,
)

SELECT_SCHEDULES: Statement[Schedule] = Statement(
    lambda: select(*S).order_by(S.created_at, S.id), schedule_from_row
)

SELECT_NEXT_DUE: Statement[tuple[int]] = Statement(
    lambda: (
        select(S.due_at)
        .where(S.state == const(ScheduleState.ACTIVE.value), S.due_at.is_not(None))
        .order_by(S.due_at)
        .limit(const(1))
    )
)

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


def get_schedule(tx: Transaction, name: str) -> Schedule:
    """The schedule of this id or label."""
    return _get_schedule(tx, SELECT_SCHEDULE, name)


def lock_schedule(tx: Transaction, name: str) -> Schedule:
    """The same, locked until the transaction ends."""
    return _get_schedule(tx, LOCK_SCHEDULE, name)


def list_schedules(tx: Transaction, wanted: ScheduleFilter = ALL_SCHEDULES) -> list[Schedule]:
    """The schedules that pass the filter, the oldest first."""
    return [each for each in tx.all(SELECT_SCHEDULES, {}) if wanted.matches(each)]


def count_schedules(tx: Transaction) -> dict[str, int]:
    """The number of schedules in each state, zeros included."""
    counts = dict(tx.all(COUNT_BY_STATE, {}))
    return {state.value: counts.get(state.value, 0) for state in ScheduleState}


def next_due(tx: Transaction) -> int | None:
    """When the next schedule is due."""
    row = tx.one(SELECT_NEXT_DUE, {})
    return None if row is None else row[0]


def insert_schedule(tx: Transaction, schedule: Schedule) -> None:
    """Insert a new schedule."""
    tx.write(INSERT_SCHEDULE, schedule_values(schedule))


def update_schedule(tx: Transaction, schedule: Schedule) -> Schedule:
    """Write a changed schedule."""
    # A scheduler that read the row earlier must see a change, even within one millisecond.
    later = replace(schedule, updated_at=max(tx.now, schedule.updated_at + 1))
    tx.write(UPDATE_SCHEDULE, {**schedule_values(later), "schedule": schedule.id})
    return later


def delete_schedule(tx: Transaction, schedule: Schedule) -> None:
    """Delete a schedule."""
    tx.write(DELETE_SCHEDULE, {"schedule": schedule.id})


def event_values(schedule: Schedule) -> ScheduleValues:
    """The fields that every event of this schedule has."""
    return {
        "agent": schedule.agent,
        "schedule": schedule.id,
        "label": schedule.label,
        "team": schedule.team_id,
    }


def append_schedule_event(tx: Transaction, event: ScheduleEvent) -> None:
    """Record an event of a schedule, and wake the schedulers."""
    append_event(tx, event)
    tx.wake("schedules")


def _get_schedule(tx: Transaction, statement: Statement[Schedule], name: str) -> Schedule:
    check_text(name, tx.settings.message_bytes, "the schedule's name")
    schedule = tx.one(statement, {"name": name})
    if schedule is None:
        raise UnknownSchedule(f"schedule {name[:60]!r} does not exist")
    return schedule
