"""Checks of what is to happen by itself: schedules that stopped, or that nobody fires."""

from __future__ import annotations

from bullpen.core.clock import MINUTE
from bullpen.core.doctor.check import PASSED, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.core.doctor.patient import Installation
from bullpen.core.heartbeats.heartbeat import HeartbeatState
from bullpen.core.heartbeats.heartbeats import list_heartbeats
from bullpen.core.outbox.hold import find_hold
from bullpen.core.schedules.find import list_schedules
from bullpen.core.schedules.schedule import ScheduleState

LATE_AFTER_MS = 5 * MINUTE
BY_HAND = "paused by hand"
REASON_CHARS = 200


@check("schedule.paused", Severity.WARNING, Needs.SCHEMA)
def schedules_paused(patient: Installation) -> Problem | Verdict:
    """Schedules that stopped for a reason other than a person's word."""
    with patient.store.read() as tx:
        found = list_schedules(tx)
    stopped = [
        each
        for each in found
        if each.state is ScheduleState.PAUSED and each.reason and each.reason != BY_HAND
    ]
    if not stopped:
        return PASSED
    first = stopped[0]
    return Problem(
        text=f"{len(stopped)} schedules are paused, as {first.label or first.id}:"
        f" {(first.reason or '')[:REASON_CHARS]}",
        remedy=f"bullpen schedule resume {first.label or first.id}, when the reason is gone",
    )


@check("schedule.late", Severity.WARNING, Needs.SCHEMA)
def schedules_late(patient: Installation) -> Problem | Verdict:
    """Schedules are due for minutes, and nobody lets them fire."""
    with patient.store.read() as tx:
        found, hold = list_schedules(tx), find_hold(tx)
    if hold is not None:
        return skipped("nothing comes due until it is let go (queue.on_hold)")
    due = [each.due_at for each in found if each.state is ScheduleState.ACTIVE and each.due_at]
    overdue = [each for each in due if each < patient.now - LATE_AFTER_MS]
    if not overdue:
        return PASSED
    minutes = (patient.now - min(overdue)) // MINUTE
    return Problem(
        text=f"{len(overdue)} schedules are due and do not fire, one for {minutes} minutes",
        remedy="bullpen up; if it runs: bullpen logs scheduler",
    )


@check("heartbeat.paused", Severity.WARNING, Needs.SCHEMA)
def heartbeat_paused(patient: Installation) -> Problem | Verdict:
    """Heartbeats that Bullpen paused, for they failed or had nothing to say."""
    with patient.store.read() as tx:
        found = list_heartbeats(tx)
    stopped = [each for each in found if each.state is HeartbeatState.PAUSED]
    if not stopped:
        return PASSED
    first = stopped[0]
    return Problem(
        text=f"the heartbeat of {', '.join(f'@{each.agent}' for each in stopped[:4])} is paused:"
        f" {(first.reason or '')[:REASON_CHARS]}",
        remedy=f"bullpen heartbeat on {first.agent}",
    )


SCHEDULE_CHECKS = (schedules_paused, schedules_late, heartbeat_paused)
