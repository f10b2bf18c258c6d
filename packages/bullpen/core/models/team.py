"""teams and team_members: agents with a leader, a room and limits."""

from __future__ import annotations

from sqlalchemy import Double, Index, Integer, Text

from bullpen.core.models.base import Millis, column, maybe, table

TEAMS = table(
    "teams",
    lambda: [
        column("id", Text, primary_key=True),
        column("name", Text),
        column("leader", Text),
        column("delivery", Text),
        # These three are the settings of the same name where they are NULL.
        maybe("max_hops", Integer),
        maybe("max_messages", Integer),
        maybe("max_cost", Double),
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
