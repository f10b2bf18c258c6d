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
        # Its working directory; empty means its own directory in the workspace.
        column("directory", Text),
        column("system_prompt", Text),
        column("permission", Text),
        # The scope of a session: the agent, a sender, or a conversation.
        column("context", Text),
        # The agents for which it may create schedules.
        column("scheduling", Text),
        # What the commands of its runs may read, and which people they may write to.
        column("reach", Text),
        # The sandbox of its runs.
        column("sandbox", Text),
        # Incremented by every reset; a run that started before it keeps no session.
        column("resets", Integer),
        column("created_at", Millis),
        column("updated_at", Millis),
    ],
)
"""One agent. The policy of its queue is in its lane."""

SESSIONS = table(
    "sessions",
    lambda: [
        column("agent", Text, primary_key=True),
        column("context", Text, primary_key=True),
        column("provider", Text),
        column("session_id", Text),
        # As the provider counts them, for the whole session; the tokens of a run are a difference.
        column("input_tokens", Integer),
        column("output_tokens", Integer),
        column("cost", Double),
        # A hash of its instructions, for providers that keep those of the first run.
        column("told", Text),
        column("runs", Integer),
        column("updated_at", Millis),
    ],
)
"""A session of a provider, which can be resumed by its id."""


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
"""The custom provider `custom:<id>`."""


LANES = table(
    "lanes",
    lambda: [
        column("agent", Text, primary_key=True),
        # True if external workers serve it instead of processors.
        column("outside", Boolean),
        column("state", Text),
        # The reason why it is not active, for people.
        nullable_column("reason", Text),
        column("ordering", Text),
        column("batching", Text),
        nullable_column("max_depth", Integer),
        column("overflow", Text),
        column("max_attempts", Integer),
        # The number of pending messages, updated in every transaction that changes it.
        column("pending", Integer),
        # The sort key of the next message to claim; NULL if there is none or the lane may not run.
        nullable_column("head_key", Millis),
        # The latest arrival time of a message, which never decreases.
        nullable_column("newest_at", Millis),
        # Set while a provider's rate limit delays the whole lane.
        nullable_column("not_before", Millis),
        nullable_column("claim_token", Text),
        nullable_column("claimed_by", Text),
        # When it was last claimed; the lane with the oldest claim is served first.
        column("claimed_at", Millis),
        nullable_column("lease_expires_at", Millis),
        # The length of the lease.
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
"""The queue of one agent, and the claim on it."""


TEAMS = table(
    "teams",
    lambda: [
        column("id", Text, primary_key=True),
        column("name", Text),
        column("leader", Text),
        column("delivery", Text),
        # If NULL, the settings of the same names apply.
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
"""The membership of an agent in a team."""
