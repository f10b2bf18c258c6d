"""teams and team_members: agents with a leader, a room and limits."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Millis, table_of


class TeamRow(Base):
    """One team."""

    __tablename__ = "teams"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    leader: Mapped[str]
    delivery: Mapped[str]
    max_hops: Mapped[int | None]
    """These three are the settings of the same name where they are NULL."""
    max_messages: Mapped[int | None]
    max_cost: Mapped[float | None]
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]


class TeamMemberRow(Base):
    """One agent's place in a team."""

    __tablename__ = "team_members"
    team_id: Mapped[str] = mapped_column(primary_key=True)
    agent: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int]
    __table_args__ = (Index("ix_team_members_agent", "agent"),)


TEAMS = table_of(TeamRow)
TEAM_MEMBERS = table_of(TeamMemberRow)
