"""What comes in of a schedule. What is null or not sent stays as it is, or is the default."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bullpen.api.models import BIG, Number
from bullpen.api.roster.body import Body, Name, Place
from bullpen.core.schedules.plan import MissedPolicy
from bullpen.core.schedules.schedule import OverlapPolicy

Moment = Annotated[int, Field(ge=0, le=BIG, strict=True)]
Text = Annotated[str, Field(max_length=500)]


class ScheduleBody(Body):
    """A schedule, or what of it is to be changed."""

    message: str | None = Field(None, description="what is said each time")
    agentId: Name | None = Field(None, description="whom it asks")  # noqa: N815
    agent: Name | None = Field(None, description="the same")
    team: Name | None = Field(None, description="instead: the team whose leader it asks")
    cron: Text | None = Field(None, description="as `0 9 * * 1-5`, or `@daily`")
    runAt: Text | Moment | None = Field(  # noqa: N815 - as the reference's clients say it
        None, description="once, at a time in ISO 8601 or in milliseconds"
    )
    every_seconds: Number | None = Field(None, description="again and again; 60 at least")
    label: Name | None = Field(None, description="a name that no other has; empty is none")
    channel: Name | None = Field(None, description="where the answer goes; `schedule` is nowhere")
    address: Place | None = Field(None, description="to whom on that channel")
    to: Place | None = Field(None, description="both in one: `channel:address`, or a word for it")
    sender: Name | None = Field(None, description="who says it; else `Scheduler`")
    enabled: bool | None = None
    zone: Name | None = Field(None, description="as Europe/Berlin; else the owner's")
    missed: MissedPolicy | None = Field(None, description="skip, one, or all of them; else one")
    overlap: OverlapPolicy | None = Field(None, description="skip, or queue; else skip")
    jitter_seconds: Number | None = Field(None, description="up to so much later, by chance")
