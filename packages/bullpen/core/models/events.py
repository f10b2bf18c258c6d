"""events, agent_messages and chat_messages."""

from __future__ import annotations

from sqlalchemy import Index, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, partial_index, table

EVENTS = table(
    "events",
    lambda: [
        column("id", BigId, primary_key=True),
        column("type", Text),
        nullable_column("agent", Text),
        nullable_column("conversation_id", Text),
        nullable_column("message_id", Text),
        # The fields, a JSON object.
        nullable_column("data", Text),
        column("created_at", Millis),
        partial_index("ix_events_progress", "created_at", where="type = 'agent_progress'"),
    ],
)
"""One event, written in the transaction of the change."""


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
"""One message to an agent (role `user`) or by it (role `assistant`)."""

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
