"""events: the record of every move. Append-only; what live views show."""

from __future__ import annotations

from sqlalchemy.orm import Mapped

from bullpen.core.models.base import Base, Id, Millis, partial_index, table_of


class EventRow(Base):
    """One thing that happened, written in the transaction that made it happen."""

    __tablename__ = "events"
    id: Mapped[Id]
    type: Mapped[str]
    agent: Mapped[str | None]
    conversation_id: Mapped[str | None]
    message_id: Mapped[str | None]
    data: Mapped[str | None]
    """The rest, a JSON object."""
    created_at: Mapped[Millis]
    __table_args__ = (
        partial_index("ix_events_progress", "created_at", where="type = 'agent_progress'"),
    )


EVENTS = table_of(EventRow)
