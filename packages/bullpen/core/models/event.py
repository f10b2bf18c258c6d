"""events: the record of every move. Append-only; what live views show."""

from __future__ import annotations

from sqlalchemy import Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, partial_index, table

EVENTS = table(
    "events",
    lambda: [
        column("id", BigId, primary_key=True),
        column("type", Text),
        nullable_column("agent", Text),
        nullable_column("conversation_id", Text),
        nullable_column("message_id", Text),
        # The rest, a JSON object.
        nullable_column("data", Text),
        column("created_at", Millis),
        partial_index("ix_events_progress", "created_at", where="type = 'agent_progress'"),
    ],
)
"""One thing that happened, written in the transaction that made it happen."""
