"""What happens to schedules and heartbeats."""

from __future__ import annotations

from bullpen.core.events.base import AgentEvent, Level, MessageEvent, OwnedEvent, note


class ScheduleEvent(OwnedEvent):
    """Something that happened to a schedule, and no message came of it."""

    schedule: str
    label: str | None
    team: str | None


class ScheduleAdded(ScheduleEvent):
    """a schedule was made"""

    type = "schedule_added"
    says = "has a new schedule"
    quiet = True
    made_by: str


class ScheduleChanged(ScheduleEvent):
    """it was changed"""

    type = "schedule_changed"
    says = "its schedule was changed"
    quiet = True
    changed: list[str] = note("names")


class ScheduleRemoved(ScheduleEvent):
    """it was removed"""

    type = "schedule_removed"
    says = "its schedule was removed"
    quiet = True


class SchedulePaused(ScheduleEvent):
    """it fires no more"""

    type = "schedule_paused"
    level = Level.WARNING
    says = "its schedule is paused"
    quiet = True
    reason: str


class ScheduleResumed(ScheduleEvent):
    """it fires again"""

    type = "schedule_resumed"
    says = "its schedule fires again"
    quiet = True


class ScheduleFired(MessageEvent):
    """its message was put into the queue"""

    type = "schedule_fired"
    says = "its schedule fired"
    quiet = True
    schedule: str
    label: str | None
    team: str | None
    due_at: int | None = note("null: somebody asked for it")


class ScheduleSkipped(ScheduleEvent):
    """it was due, and nothing was asked"""

    type = "schedule_skipped"
    level = Level.NOTICE
    says = "its schedule was skipped"
    quiet = True
    due_at: int
    reason: str


class ScheduleMissed(ScheduleEvent):
    """it was due while no scheduler ran, and that is not made up for"""

    type = "schedule_missed"
    level = Level.FAILURE
    says = "its schedule was missed"
    quiet = True
    first: int = note("due time")
    last: int = note("due time")
    times: int
    reason: str


class HeartbeatChanged(AgentEvent):
    """how an agent is woken was changed"""

    type = "heartbeat_changed"
    says = "its heartbeat was changed"
    quiet = True
    state: str
    changed: list[str] = note("names")


class HeartbeatSent(MessageEvent):
    """an agent was woken"""

    type = "heartbeat_sent"
    says = "was woken"
    quiet = True


class HeartbeatSilent(MessageEvent):
    """it had nothing to say"""

    type = "heartbeat_silent"
    says = "had nothing to say"


class HeartbeatSkipped(AgentEvent):
    """it was not woken, though it was time"""

    type = "heartbeat_skipped"
    level = Level.NOTICE
    says = "was not woken"
    quiet = True
    reason: str


class HeartbeatPaused(AgentEvent):
    """it is woken no more, by Bullpen's own decision"""

    type = "heartbeat_paused"
    level = Level.WARNING
    says = "its heartbeat is paused"
    reason: str
