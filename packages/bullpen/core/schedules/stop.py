"""Schedules that stop: because somebody says so, or because nobody is there any more."""

from __future__ import annotations

from dataclasses import replace

from bullpen.core.events.append import EventType
from bullpen.core.outbox.proactive import send_to_owner
from bullpen.core.schedules.find import ScheduleFilter, list_schedules, lock_schedule
from bullpen.core.schedules.schedule import Schedule, ScheduleState
from bullpen.core.schedules.write import append_schedule_event, update_schedule
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text


def pause_schedule(tx: Transaction, name: str, reason: str = "paused by hand") -> Schedule:
    """Let it fire no more until it is resumed; what comes due meanwhile is not missed."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    schedule = lock_schedule(tx, name)
    return (
        pause_locked(tx, schedule, reason) if schedule.state is ScheduleState.ACTIVE else schedule
    )


def pause_locked(tx: Transaction, schedule: Schedule, reason: str) -> Schedule:
    """Pause an active schedule that is at hand."""
    paused = replace(schedule, state=ScheduleState.PAUSED, reason=reason, due_at=None)
    paused = update_schedule(tx, paused)
    append_schedule_event(tx, EventType.SCHEDULE_PAUSED, paused, reason=reason)
    return paused


def pause_and_notify(tx: Transaction, schedule: Schedule, reason: str) -> None:
    """The same for a reason that is not the owner's own: he is told."""
    pause_locked(tx, schedule, reason)
    send_to_owner(
        tx,
        f"The schedule {schedule.label or schedule.id} is paused: {reason}.\n"
        f"To give it to another: bullpen schedule set {schedule.id} --agent NAME\n"
        f"To let it go on: bullpen schedule resume {schedule.id}",
    )


def pause_orphans(
    tx: Transaction, reason: str, *, agent: str | None = None, team_id: str | None = None
) -> None:
    """Pause all that are for an agent or a team that is let go just now."""
    wanted = ScheduleFilter(agent=agent, team_id=team_id, state=ScheduleState.ACTIVE)
    for each in list_schedules(tx, wanted):
        current = lock_schedule(tx, each.id)
        if wanted.matches(current):
            pause_and_notify(tx, current, reason)
