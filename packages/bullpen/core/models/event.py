"""events: the record of every move. Append-only; what live views show."""

from __future__ import annotations

from sqlalchemy import Text

from bullpen.core.models.base import BigId, Millis, column, maybe, partial_index, table

EVENTS = table(
    "events",
    lambda: [
        column("id", BigId, primary_key=True),
        column("type", Text),
        maybe("agent", Text),
        maybe("conversation_id", Text),
        maybe("message_id", Text),
        # The rest, a JSON object.
        maybe("data", Text),
        column("created_at", Millis),
        partial_index("ix_events_progress", "created_at", where="type = 'agent_progress'"),
    ],
)
"""One thing that happened, written in the transaction that made it happen."""
