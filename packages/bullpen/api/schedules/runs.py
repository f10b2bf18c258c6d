"""What became of a schedule's runs, as clients read it."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import BaseModel, Field, RootModel

from bullpen.core.schedules.history import ScheduleRun


class RunDelivery(BaseModel):
    """An answer on its way."""

    response: int
    channel: str
    status: str = Field(description="`acked` is there")
    receipts: list[str] = Field(description="what the platform said of each part")
    acked_at: int | None
    error: str | None


class RunAnswer(BaseModel):
    """What became of a due time, or of several that were missed."""

    id: int
    due_at: int | None = Field(description="null of a run that somebody asked for")
    until: int | None = Field(description="the last that was missed; `due_at` is then the first")
    fired_at: int
    outcome: str = Field(description="`fired`, `skipped` or `missed`")
    times: int = Field(description="how many due times this stands for")
    message_id: str | None
    reason: str | None
    state: str | None = Field(description="of its message; null if there is none, or no more")
    error: str | None
    cost: float = Field(description="dollars, for all that it set off")
    tokens: int
    deliveries: list[RunDelivery]

    @classmethod
    def of(cls, run: ScheduleRun) -> RunAnswer:
        """The run, as it is shown."""
        return cls.model_validate(asdict(run))


class RunList(RootModel[list[RunAnswer]]):
    """Runs."""
