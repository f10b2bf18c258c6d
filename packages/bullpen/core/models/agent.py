"""agents: who answers; sessions: what a provider remembers of an agent's talk."""

from __future__ import annotations

from sqlalchemy import Double, Integer, Text

from bullpen.core.models.base import Millis, column, table

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
        # A hash of what it was told about itself, for those that keep the first.
        column("told", Text),
        column("runs", Integer),
        column("updated_at", Millis),
    ],
)
"""A session of a provider, to be resumed by its id."""
