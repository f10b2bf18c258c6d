"""attempts: one row for each finished run. Append-only; the reports are made of it."""

from __future__ import annotations

from sqlalchemy import Double, Index, Integer, Text

from bullpen.core.models.base import BigId, Millis, column, maybe, table

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
        maybe("error_kind", Text),
        maybe("error", Text),
        # The same for errors that differ in numbers and ids only.
        maybe("fingerprint", Text),
        column("retry_count", Integer),
        maybe("provider", Text),
        maybe("model", Text),
        column("input_tokens", Integer),
        column("output_tokens", Integer),
        column("cost", Double),
        column("conversation_id", Text),
        column("hop", Integer),
        maybe("team_id", Text),
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
