"""agent_messages and chat_messages: what was said, to and by agents and in rooms. Append-only."""

from __future__ import annotations

from sqlalchemy import Index, Text

from bullpen.core.models.base import BigId, Millis, column, table

AGENT_MESSAGES = table(
    "agent_messages",
    lambda: [
        column("id", BigId, primary_key=True),
        column("agent_id", Text),
        column("role", Text),
        column("channel", Text),
        column("sender", Text),
        column("message_id", Text),
        column("content", Text),
        column("created_at", Millis),
        Index("ix_agent_messages_agent", "agent_id", "id"),
    ],
)
"""One thing said to an agent (role `user`) or by it (role `assistant`)."""

CHAT_MESSAGES = table(
    "chat_messages",
    lambda: [
        column("id", BigId, primary_key=True),
        column("team_id", Text),
        column("from_agent", Text),
        column("message", Text),
        column("created_at", Millis),
        Index("ix_chat_messages_team", "team_id", "id"),
    ],
)
"""One post in a team's room."""
