"""heartbeats: which agents look after their work by themselves; beats: what became of each."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Id, MaybeMillis, Millis, partial_index, table_of


class HeartbeatRow(Base):
    """How one agent is woken, and how it has fared."""

    __tablename__ = "heartbeats"
    agent: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    reason: Mapped[str | None]
    every: Mapped[Millis]
    active_from: Mapped[int | None]
    """Minutes of the day in the owner's zone; none is the whole day."""
    active_until: Mapped[int | None]
    budget: Mapped[int]
    """So many beats a day at the most."""
    max_silent: Mapped[int]
    """After so many silent ones in a row it is paused; 0 is never."""
    channel: Mapped[str]
    """Where it says something, if it does; empty is the owner's place."""
    sender_id: Mapped[str | None]
    reply_to: Mapped[str | None]
    silent: Mapped[int]
    errors: Mapped[int]
    due_at: Mapped[MaybeMillis]
    last_at: Mapped[MaybeMillis]
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]
    __table_args__ = (partial_index("ix_heartbeats_due", "due_at", where="state = 'on'"),)


class BeatRow(Base):
    """One beat: sent, or not, and what came of it."""

    __tablename__ = "beats"
    id: Mapped[Id]
    agent: Mapped[str]
    due_at: Mapped[Millis]
    fired_at: Mapped[Millis]
    outcome: Mapped[str]
    message_id: Mapped[str | None]
    reason: Mapped[str | None]
    __table_args__ = (
        Index("uq_beats_message_id", "message_id", unique=True),
        Index("ix_beats_agent", "agent", "id"),
        {"sqlite_autoincrement": True},
    )


HEARTBEATS = table_of(HeartbeatRow)
BEATS = table_of(BeatRow)
