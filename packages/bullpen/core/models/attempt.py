"""attempts: one row for each finished run. Append-only; the reports are made of it."""

from __future__ import annotations

from sqlalchemy import Double, Index, Integer, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, table

ATTEMPTS = table(
    "attempts",
    lambda: [
        column("id", BigId, primary_key=True),
        # The primary message of the batch.
        column("message_id", Text),
        # How many messages the run was to answer.
        column("messages", Integer),
        column("agent", Text),
        column("worker", Text),
        column("outcome", Text),
        nullable_column("error_kind", Text),
        nullable_column("error", Text),
        # The same for errors that differ in numbers and ids only.
        nullable_column("fingerprint", Text),
        column("retry_count", Integer),
        nullable_column("provider", Text),
        nullable_column("model", Text),
        column("input_tokens", Integer),
        column("output_tokens", Integer),
        column("cost", Double),
        column("conversation_id", Text),
        column("hop", Integer),
        nullable_column("team_id", Text),
        column("channel", Text),
        column("enqueued_at", Millis),
        column("claimed_at", Millis),
        column("started_at", Millis),
        column("finished_at", Millis),
        Index("ix_attempts_message_id", "message_id"),
        Index("ix_attempts_conversation", "conversation_id"),
    ],
)
"""One run of a batch by a provider, and how it ended."""
