"""Schedules as somebody handles them: add, change, resume, remove."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack

from sqlalchemy import bindparam, select

from bullpen.core.clock import DAY
from bullpen.core.errors import BadSchedule, BadText, IllegalMove, NameTaken
from bullpen.core.events.append import EventType
from bullpen.core.outbox.place import DeliveryAddress
from bullpen.core.roster.display_name import check_display_name
from bullpen.core.roster.find import get_agent
from bullpen.core.roster.teams import get_team
from bullpen.core.schedules.author import check_reach, check_schedule_limit
from bullpen.core.schedules.columns import S
from bullpen.core.schedules.find import lock_schedule
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.schedule import (
    OWNER_AUTHOR,
    NewSchedule,
    OverlapPolicy,
    Schedule,
    ScheduleState,
)
from bullpen.core.schedules.timing import Timing
from bullpen.core.schedules.write import (
    append_schedule_event,
    delete_schedule,
    insert_schedule,
    update_schedule,
)
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

MAX_JITTER_MS = DAY

SELECT_BY_LABEL: Statement[tuple[str]] = Statement(
    lambda: select(S.id).where((S.label == bindparam("label")) | (S.id == bindparam("label")))
)


class ScheduleChange(TypedDict, total=False):
    """What of a schedule is to be changed; what is not named stays."""

    label: str | None
    agent: str | None
    team_id: str | None
    message: str
    timing: Timing
    place: DeliveryAddress
    sender: str
    missed: MissedPolicy
    overlap: OverlapPolicy
    jitter: int


def add_schedule(tx: Transaction, new: NewSchedule, author: str = OWNER_AUTHOR) -> Schedule:
    """Make a schedule; it fires from now on, unless it is to be paused."""
    check_reach(tx, author, new.agent, new.team_id)
    check_schedule_limit(tx, author)
    given = {name: getattr(new, name) for name in NewSchedule.__dataclass_fields__}
    schedule = Schedule(
        **given,
        id=tx.ids.new("schedule"),
        state=ScheduleState.PAUSED if new.paused else ScheduleState.ACTIVE,
        reason="made so" if new.paused else None,
        due_at=None if new.paused else new.timing.after(tx.now),
        made_by=author,
        created_at=tx.now,
        updated_at=tx.now,
    )
    _check_texts(tx, schedule)
    _check_recipient(tx, schedule)
    insert_schedule(tx, schedule)
    append_schedule_event(tx, EventType.SCHEDULE_ADDED, schedule, made_by=author)
    return schedule


def change_schedule(
    tx: Transaction, name: str, author: str = OWNER_AUTHOR, **change: Unpack[ScheduleChange]
) -> Schedule:
    """Change what is named and keep the rest; gives the schedule as it is now."""
    before = lock_schedule(tx, name)
    changed = replace(before, **change)
    check_reach(tx, author, changed.agent, changed.team_id)
    _check_texts(tx, changed)
    if (changed.agent, changed.team_id) != (before.agent, before.team_id):
        _check_recipient(tx, changed)
    if changed.timing != before.timing:
        due = changed.timing.after(tx.now)
        if changed.state is ScheduleState.DONE and due is not None:
            changed = replace(changed, state=ScheduleState.ACTIVE, reason=None)
        changed = replace(changed, due_at=due if changed.state is ScheduleState.ACTIVE else None)
    changed = update_schedule(tx, changed)
    append_schedule_event(tx, EventType.SCHEDULE_CHANGED, changed, changed=sorted(change))
    return changed


def resume_schedule(tx: Transaction, name: str) -> Schedule:
    """Let it fire again, from now on."""
    schedule = lock_schedule(tx, name)
    if schedule.state is ScheduleState.ACTIVE:
        return schedule
    _check_recipient(tx, schedule)
    due = schedule.timing.after(tx.now)
    if due is None:
        raise IllegalMove(
            f"the schedule {schedule.id} has nothing to come any more",
            hint="Give it another time, or make a new one.",
        )
    active = replace(schedule, state=ScheduleState.ACTIVE, reason=None, due_at=due)
    active = update_schedule(tx, active)
    append_schedule_event(tx, EventType.SCHEDULE_RESUMED, active)
    return active


def remove_schedule(tx: Transaction, name: str) -> Schedule:
    """Remove it; what it has put into a queue stays there, and its history too."""
    schedule = lock_schedule(tx, name)
    delete_schedule(tx, schedule)
    append_schedule_event(tx, EventType.SCHEDULE_REMOVED, schedule)
    return schedule


def _check_texts(tx: Transaction, schedule: Schedule) -> None:
    limit = tx.settings.message_bytes
    check_text(schedule.message, limit)
    if not schedule.message.strip():
        raise BadText("there is nothing to say", hint="Write what the agent is to be told.")
    check_display_name(schedule.sender, limit)
    if not 0 <= schedule.jitter <= MAX_JITTER_MS:
        raise BadSchedule("the jitter is below zero, or over a day", hint="Give it as `5m`.")
    if schedule.label is not None:
        _check_label(tx, schedule, schedule.label)


def _check_recipient(tx: Transaction, schedule: Schedule) -> None:
    if (schedule.agent is None) is (schedule.team_id is None):
        raise BadSchedule("a schedule is for one agent or one team", hint="Name one of them.")
    if schedule.agent is not None:
        get_agent(tx, schedule.agent)
    if schedule.team_id is not None:
        get_team(tx, schedule.team_id)


def _check_label(tx: Transaction, schedule: Schedule, label: str) -> None:
    check_display_name(label, tx.settings.message_bytes)
    if not label.strip():
        raise BadText("a label has something in it", hint="Leave it out, or write one.")
    if any(id_ != schedule.id for (id_,) in tx.all(SELECT_BY_LABEL, {"label": label})):
        raise NameTaken(f"there is a schedule called {label[:60]!r} already")
