"""teams and team_members: agents with a leader, a room and limits."""

from __future__ import annotations

from sqlalchemy import Double, Index, Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, table

TEAMS = table(
    "teams",
    lambda: [
        column("id", Text, primary_key=True),
        column("name", Text),
        column("leader", Text),
        column("delivery", Text),
        # These three are the settings of the same name where they are NULL.
        nullable_column("max_hops", Integer),
        nullable_column("max_messages", Integer),
        nullable_column("max_cost", Double),
        column("created_at", Millis),
        column("updated_at", Millis),
    ],
)
"""One team."""

TEAM_MEMBERS = table(
    "team_members",
    lambda: [
        column("team_id", Text, primary_key=True),
        column("agent", Text, primary_key=True),
        column("position", Integer),
        Index("ix_team_members_agent", "agent"),
    ],
)
"""One agent's place in a team."""
