"""gathered: a team's answers that wait to be sent as one, when their conversation is at rest."""

from __future__ import annotations

from sqlalchemy import Index, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, table

GATHERED = table(
    "gathered",
    lambda: [
        column("id", BigId, primary_key=True),
        column("conversation_id", Text),
        column("message_id", Text),
        column("agent", Text),
        column("message", Text),
        nullable_column("files", Text),
        column("created_at", Millis),
        Index("ix_gathered_conversation", "conversation_id", "id"),
    ],
)
"""One agent's part of the answer."""
