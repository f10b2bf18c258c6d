"""A schedule as clients read it: the reference's fields, and ours beside them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, Field, RootModel, WithJsonSchema

from bullpen.core.clock import SECOND
from bullpen.core.schedules.history import next_due_times
from bullpen.core.schedules.meaning import describe_timing
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.schedule import OverlapPolicy, Schedule, ScheduleState
from bullpen.core.schedules.timing import TimingKind

# Written out: in the description another type has its name.
WhenKind = Annotated[
    TimingKind, WithJsonSchema({"type": "string", "enum": [kind.value for kind in TimingKind]})
]


class ScheduleAnswer(BaseModel):
    """A schedule."""

    id: str
    label: str | None
    agentId: str | None = Field(description="whom it asks; null of a team's")  # noqa: N815
    team: str | None = Field(description="the team whose leader it asks; null of an agent's")
    message: str
    kind: WhenKind = Field(description="which of the next three says when")
    cron: str | None
    runAt: str | None = Field(description="ISO 8601, UTC")  # noqa: N815
    every_seconds: int | None
    at: int | None = Field(description="`runAt` in milliseconds")
    zone: str = Field(description="whose clock a cron expression is read by")
    meaning: str = Field(description="when it is due, in words")
    channel: str = Field(description="where the answer goes; `schedule` is nowhere")
    to: str = Field(description="the same with its address, or `nowhere`")
    sender: str
    missed: MissedPolicy = Field(description="what becomes of due times at which nobody was there")
    overlap: OverlapPolicy = Field(
        description="what happens while the last run still waits or works"
    )
    jitter_seconds: int = Field(description="up to so much later, by chance")
    enabled: bool = Field(description="whether it is active")
    state: ScheduleState
    reason: str | None = Field(description="why it is not active")
    due_at: int | None
    next: list[int] = Field(description="the next due times; of one that is paused, if it were not")
    made_by: str = Field(description="`owner`, `key:<id>` or `agent:<id>`")
    createdAt: int  # noqa: N815
    updated_at: int

    @classmethod
    def of(cls, schedule: Schedule, now: int) -> ScheduleAnswer:
        """The schedule, as it is shown."""
        timing, place = schedule.timing, schedule.place
        return cls(
            id=schedule.id,
            label=schedule.label,
            agentId=schedule.agent,
            team=schedule.team_id,
            message=schedule.message,
            kind=timing.kind,
            cron=timing.cron,
            runAt=None if timing.at is None else _iso(timing.at),
            every_seconds=None if timing.every is None else timing.every // SECOND,
            at=timing.at,
            zone=timing.zone,
            meaning=describe_timing(timing),
            channel=place.channel,
            to=str(place),
            sender=schedule.sender,
            missed=schedule.missed,
            overlap=schedule.overlap,
            jitter_seconds=schedule.jitter // SECOND,
            enabled=schedule.state is ScheduleState.ACTIVE,
            state=schedule.state,
            reason=schedule.reason,
            due_at=schedule.due_at,
            next=next_due_times(schedule, now),
            made_by=schedule.made_by,
            createdAt=schedule.created_at,
            updated_at=schedule.updated_at,
        )


class ScheduleList(RootModel[list[ScheduleAnswer]]):
    """Schedules."""


def _iso(at: int) -> str:
    moment = datetime.fromtimestamp(at // SECOND, UTC).replace(microsecond=at % SECOND * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
