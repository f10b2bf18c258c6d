"""Events of schedules and heartbeats."""

from __future__ import annotations

from bullpen.core.events.base import AgentEvent, Level, MessageEvent, OwnedEvent, note


class ScheduleEvent(OwnedEvent):
    """An event about a schedule that enqueued no message."""

    schedule: str
    label: str | None
    team: str | None


class ScheduleAdded(ScheduleEvent):
    """A schedule was created"""

    type = "schedule_added"
    says = "schedule {schedule} was created"
    quiet = True
    made_by: str


class ScheduleChanged(ScheduleEvent):
    """A schedule was changed"""

    type = "schedule_changed"
    says = "schedule {schedule} was changed ({changed})"
    quiet = True
    changed: list[str] = note("names")


class ScheduleRemoved(ScheduleEvent):
    """A schedule was removed"""

    type = "schedule_removed"
    says = "schedule {schedule} was removed"
    quiet = True


class SchedulePaused(ScheduleEvent):
    """A schedule was paused"""

    type = "schedule_paused"
    level = Level.WARNING
    says = "schedule {schedule} was paused"
    quiet = True
    reason: str


class ScheduleResumed(ScheduleEvent):
    """A schedule was resumed"""

    type = "schedule_resumed"
    says = "schedule {schedule} was resumed"
    quiet = True


class ScheduleFired(MessageEvent):
    """A schedule fired: its message was enqueued"""

    type = "schedule_fired"
    says = "schedule {schedule} fired"
    quiet = True
    schedule: str
    label: str | None
    team: str | None
    due_at: int | None = note("null if a person started it")


class ScheduleSkipped(ScheduleEvent):
    """A schedule was due, but did not fire"""

    type = "schedule_skipped"
    level = Level.NOTICE
    says = "schedule {schedule} was skipped"
    quiet = True
    due_at: int
    reason: str


class ScheduleMissed(ScheduleEvent):
    """A schedule was due while no scheduler was running; this run was skipped"""

    type = "schedule_missed"
    level = Level.FAILURE
    says = "schedule {schedule} was missed"
    quiet = True
    first: int = note("due time")
    last: int = note("due time")
    times: int
    reason: str


class HeartbeatChanged(AgentEvent):
    """The heartbeat of an agent was changed"""

    type = "heartbeat_changed"
    says = "heartbeat was changed ({changed})"
    quiet = True
    state: str
    changed: list[str] = note("names")


class HeartbeatSent(MessageEvent):
    """A heartbeat message was enqueued"""

    type = "heartbeat_sent"
    says = "heartbeat was sent"
    quiet = True


class HeartbeatSilent(MessageEvent):
    """An agent had nothing to report at its heartbeat"""

    type = "heartbeat_silent"
    says = "had nothing to report"
    bookkeeping = True


class HeartbeatSkipped(AgentEvent):
    """A heartbeat was due, but was not sent"""

    type = "heartbeat_skipped"
    level = Level.NOTICE
    says = "heartbeat was skipped"
    quiet = True
    reason: str


class HeartbeatPaused(AgentEvent):
    """Bullpen paused the heartbeat of an agent"""

    type = "heartbeat_paused"
    level = Level.WARNING
    says = "heartbeat was paused"
    reason: str
