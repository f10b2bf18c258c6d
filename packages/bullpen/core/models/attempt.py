"""attempts: one row for each finished run. Append-only; the reports are made of it."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped

from bullpen.core.models.base import Base, Id, Millis, table_of


class AttemptRow(Base):
    """One run of a batch by a provider, and how it ended."""

    __tablename__ = "attempts"
    id: Mapped[Id]
    message_id: Mapped[str]
    """The primary message of the batch."""
    messages: Mapped[int]
    """How many messages the run was to answer."""
    agent: Mapped[str]
    worker: Mapped[str]
    outcome: Mapped[str]
    error_kind: Mapped[str | None]
    error: Mapped[str | None]
    fingerprint: Mapped[str | None]
    """The same for errors that differ in numbers and ids only."""
    retry_count: Mapped[int]
    provider: Mapped[str | None]
    model: Mapped[str | None]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cost: Mapped[float]
    conversation_id: Mapped[str]
    hop: Mapped[int]
    team_id: Mapped[str | None]
    channel: Mapped[str]
    enqueued_at: Mapped[Millis]
    claimed_at: Mapped[Millis]
    started_at: Mapped[Millis]
    finished_at: Mapped[Millis]
    __table_args__ = (
        Index("ix_attempts_message_id", "message_id"),
        Index("ix_attempts_conversation", "conversation_id"),
    )


ATTEMPTS = table_of(AttemptRow)
