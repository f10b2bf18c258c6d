"""A schedule: what is said, to whom, when, and where the answer goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bullpen.core.outbox.place import DeliveryAddress
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.timing import Timing

DEFAULT_SENDER = "Scheduler"

OWNER_AUTHOR = "owner"
"""Who made it, if no agent and no key did."""

AGENT_AUTHOR_PREFIX = "agent:"
KEY_AUTHOR_PREFIX = "key:"


class OverlapPolicy(StrEnum):
    """What happens at a due time while the last run still waits or works."""

    SKIP = "skip"
    QUEUE = "queue"


class ScheduleState(StrEnum):
    """Whether it fires."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    """It has nothing to come any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule as somebody asks for it; for an agent or for a team."""

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
    """Up to so many milliseconds later, by chance."""
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(NewSchedule):
    """One that exists."""

    id: str
    state: ScheduleState
    reason: str | None
    due_at: int | None
    made_by: str
    created_at: int
    updated_at: int
