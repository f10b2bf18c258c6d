"""agents, teams, lanes, sessions and custom providers."""

from __future__ import annotations

from sqlalchemy import Boolean, Double, Index, Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, partial_index, table

AGENTS = table(
    "agents",
    lambda: [
        column("id", Text, primary_key=True),
        column("name", Text),
        column("provider", Text),
        column("model", Text),
        # Where it works; empty is its own directory in the workspace.
        column("directory", Text),
        column("system_prompt", Text),
        column("permission", Text),
        # What shares a session: everything of the agent's, of a sender's, or of a conversation.
        column("context", Text),
        # For whom it may make schedules.
        column("scheduling", Text),
        # What the commands of its runs may read, and to whom they may write.
        column("reach", Text),
        # What keeps its runs from the rest of the machine.
        column("sandbox", Text),
        # Grows with every reset; a run that began before keeps no session.
        column("resets", Integer),
        column("created_at", Millis),
        column("updated_at", Millis),
    ],
)
"""One agent. How its queue behaves is in its lane."""

SESSIONS = table(
    "sessions",
    lambda: [
        column("agent", Text, primary_key=True),
        column("context", Text, primary_key=True),
        column("provider", Text),
        column("session_id", Text),
        # As the provider counts: for the whole session, so that a run's share is a difference.
        column("input_tokens", Integer),
        column("output_tokens", Integer),
        column("cost", Double),
        # A hash of its instructions, for providers that keep the first ones.
        column("told", Text),
        column("runs", Integer),
        column("updated_at", Millis),
    ],
)
"""A session of a provider, to be resumed by its id."""


CUSTOM_PROVIDERS = table(
    "custom_providers",
    lambda: [
        column("id", Text, primary_key=True),
        column("name", Text),
        column("harness", Text),
        column("base_url", Text),
        # A secret: never shown, and passed only to the program that needs it.
        column("api_key", Text),
        column("model", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
    ],
)
"""What `custom:<id>` stands for."""


LANES = table(
    "lanes",
    lambda: [
        column("agent", Text, primary_key=True),
        # True if workers outside of Bullpen answer it, and no processor does.
        column("outside", Boolean),
        column("state", Text),
        # Why it is not active, for people to read.
        nullable_column("reason", Text),
        column("ordering", Text),
        column("batching", Text),
        nullable_column("max_depth", Integer),
        column("overflow", Text),
        column("max_attempts", Integer),
        # How many messages are pending, kept in every transaction that changes it.
        column("pending", Integer),
        # The sort key of what to claim next; NULL while there is nothing or the lane may not run.
        nullable_column("head_key", Millis),
        # The latest arrival of a message; it does not go back with the clock.
        nullable_column("newest_at", Millis),
        # Set while a provider's rate limit makes the whole lane wait.
        nullable_column("not_before", Millis),
        nullable_column("claim_token", Text),
        nullable_column("claimed_by", Text),
        # When it was last claimed: the lane that has waited longest is served first.
        column("claimed_at", Millis),
        nullable_column("lease_expires_at", Millis),
        # How long the claim lasts if nobody extends it.
        nullable_column("lease_ms", Millis),
        # The ids of the claimed messages, a JSON list, the primary first.
        nullable_column("batch", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
        partial_index(
            "ix_lanes_claimable",
            *("claimed_at", "head_key"),
            where="head_key IS NOT NULL AND outside = 0",
            postgresql="head_key IS NOT NULL AND NOT outside",
        ),
        partial_index("ix_lanes_not_before", "not_before", where="not_before IS NOT NULL"),
    ],
)
"""The queue of one agent and the claim on it."""


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
