"""schedules: what is to be said to whom, and when; schedule_runs: what became of each due time."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Id, MaybeMillis, Millis, partial_index, table_of


class ScheduleRow(Base):
    """A text that is put into an agent's queue again and again, or once."""

    __tablename__ = "schedules"
    id: Mapped[str] = mapped_column(primary_key=True)
    label: Mapped[str | None]
    agent: Mapped[str | None]
    """To whom; of a team's schedule, none: its leader is asked for each time."""
    team_id: Mapped[str | None]
    message: Mapped[str]
    kind: Mapped[str]
    """Which of the next three says when."""
    cron: Mapped[str | None]
    every: Mapped[MaybeMillis]
    at: Mapped[MaybeMillis]
    zone: Mapped[str]
    anchor: Mapped[Millis]
    """From when on: the first due time comes after it."""
    channel: Mapped[str]
    """Where the answer goes, together with `sender_id` and `reply_to`."""
    sender: Mapped[str]
    sender_id: Mapped[str | None]
    reply_to: Mapped[str | None]
    missed: Mapped[str]
    overlap: Mapped[str]
    jitter: Mapped[Millis]
    state: Mapped[str]
    reason: Mapped[str | None]
    """Why it is not active, in words for a person."""
    due_at: Mapped[MaybeMillis]
    """The next due time, of an active one."""
    made_by: Mapped[str]
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]
    __table_args__ = (
        Index("uq_schedules_label", "label", unique=True),
        partial_index("ix_schedules_due", "due_at", where="state = 'active'"),
    )


class ScheduleRunRow(Base):
    """What became of a due time, or of several that passed while nobody was there."""

    __tablename__ = "schedule_runs"
    id: Mapped[Id]
    schedule_id: Mapped[str]
    due_at: Mapped[MaybeMillis]
    """None of a run that a person asked for."""
    until: Mapped[MaybeMillis]
    """The last of the due times that were missed; `due_at` is then the first."""
    fired_at: Mapped[Millis]
    outcome: Mapped[str]
    times: Mapped[int]
    """How many due times this stands for."""
    message_id: Mapped[str | None]
    reason: Mapped[str | None]
    __table_args__ = (
        Index("uq_schedule_runs_due", "schedule_id", "due_at", unique=True),
        Index("ix_schedule_runs_schedule", "schedule_id", "id"),
        {"sqlite_autoincrement": True},
    )


SCHEDULES = table_of(ScheduleRow)
SCHEDULE_RUNS = table_of(ScheduleRunRow)
