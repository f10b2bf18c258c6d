"""agents: who answers; sessions: what a provider remembers of an agent's talk."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Millis, table_of


class AgentRow(Base):
    """One agent. How its queue behaves is in its lane."""

    __tablename__ = "agents"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    provider: Mapped[str]
    model: Mapped[str]
    directory: Mapped[str]
    """Where it works; empty is its own directory in the workspace."""
    system_prompt: Mapped[str]
    permission: Mapped[str]
    context: Mapped[str]
    """What shares a session: everything of the agent's, of a sender's, or of a conversation."""
    scheduling: Mapped[str]
    """For whom it may make schedules."""
    resets: Mapped[int]
    """Grows with every reset; a run that began before keeps no session."""
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]


class SessionRow(Base):
    """A session of a provider, to be resumed by its id."""

    __tablename__ = "sessions"
    agent: Mapped[str] = mapped_column(primary_key=True)
    context: Mapped[str] = mapped_column(primary_key=True)
    provider: Mapped[str]
    session_id: Mapped[str]
    input_tokens: Mapped[int]
    """As the provider counts: for the whole session, so that a run's share is a difference."""
    output_tokens: Mapped[int]
    cost: Mapped[float]
    told: Mapped[str]
    """A hash of what it was told about itself, for those that keep the first."""
    runs: Mapped[int]
    updated_at: Mapped[Millis]


AGENTS = table_of(AgentRow)
SESSIONS = table_of(SessionRow)
