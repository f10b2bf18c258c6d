"""agent_messages and chat_messages: what was said, to and by agents and in rooms. Append-only."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped

from bullpen.core.models.base import Base, Id, Millis, table_of


class AgentMessageRow(Base):
    """One thing said to an agent (role `user`) or by it (role `assistant`)."""

    __tablename__ = "agent_messages"
    id: Mapped[Id]
    agent_id: Mapped[str]
    role: Mapped[str]
    channel: Mapped[str]
    sender: Mapped[str]
    message_id: Mapped[str]
    content: Mapped[str]
    created_at: Mapped[Millis]
    __table_args__ = (Index("ix_agent_messages_agent", "agent_id", "id"),)


class ChatMessageRow(Base):
    """One post in a team's room."""

    __tablename__ = "chat_messages"
    id: Mapped[Id]
    team_id: Mapped[str]
    from_agent: Mapped[str]
    message: Mapped[str]
    created_at: Mapped[Millis]
    __table_args__ = (Index("ix_chat_messages_team", "team_id", "id"),)


AGENT_MESSAGES = table_of(AgentMessageRow)
CHAT_MESSAGES = table_of(ChatMessageRow)
