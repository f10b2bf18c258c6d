"""gathered: a team's answers that wait to be sent as one, when their conversation is at rest."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped

from bullpen.core.models.base import Base, Id, Millis, table_of


class GatheredRow(Base):
    """One agent's part of the answer."""

    __tablename__ = "gathered"
    id: Mapped[Id]
    conversation_id: Mapped[str]
    message_id: Mapped[str]
    agent: Mapped[str]
    message: Mapped[str]
    files: Mapped[str | None]
    created_at: Mapped[Millis]
    __table_args__ = (Index("ix_gathered_conversation", "conversation_id", "id"),)


GATHERED = table_of(GatheredRow)
