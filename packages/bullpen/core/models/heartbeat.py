"""heartbeats: which agents look after their work by themselves; beats: what became of each."""

from __future__ import annotations

from sqlalchemy import Index, Integer, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, partial_index, table

HEARTBEATS = table(
    "heartbeats",
    lambda: [
        column("agent", Text, primary_key=True),
        column("state", Text),
        nullable_column("reason", Text),
        column("every", Millis),
        # Minutes of the day in the owner's zone; none is the whole day.
        nullable_column("active_from", Integer),
        nullable_column("active_until", Integer),
        # So many beats a day at the most.
        column("budget", Integer),
        # After so many silent ones in a row it is paused; 0 is never.
        column("max_silent", Integer),
        # Where it says something, if it does; empty is the owner's place.
        column("channel", Text),
        nullable_column("sender_id", Text),
        nullable_column("reply_to", Text),
        column("silent", Integer),
        column("errors", Integer),
        nullable_column("due_at", Millis),
        nullable_column("last_at", Millis),
        column("created_at", Millis),
        column("updated_at", Millis),
        partial_index("ix_heartbeats_due", "due_at", where="state = 'on'"),
    ],
)
"""How one agent is woken, and how it has fared."""

BEATS = table(
    "beats",
    lambda: [
        column("id", BigId, primary_key=True),
        column("agent", Text),
        column("due_at", Millis),
        column("fired_at", Millis),
        column("outcome", Text),
        nullable_column("message_id", Text),
        nullable_column("reason", Text),
        Index("uq_beats_message_id", "message_id", unique=True),
        Index("ix_beats_agent", "agent", "id"),
    ],
    sqlite_autoincrement=True,
)
"""One beat: sent, or not, and what came of it."""
