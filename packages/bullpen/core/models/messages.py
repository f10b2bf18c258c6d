"""messages and their archive, attempts, receipts, aggregates and causes of failure."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, Double, Index, Integer, Text

from bullpen.core.models.base import (
    BigId,
    Millis,
    column,
    later_column,
    nullable_column,
    partial_index,
    table,
)

ATTEMPTS = table(
    "attempts",
    lambda: [
        column("id", BigId, primary_key=True),
        # The primary message of the batch.
        column("message_id", Text),
        # The number of messages in its batch.
        column("messages", Integer),
        column("agent", Text),
        column("worker", Text),
        column("outcome", Text),
        nullable_column("error_kind", Text),
        nullable_column("error", Text),
        # Equal for errors that differ only in numbers and ids.
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
        # From whom the primary message is.
        later_column("sender", Text, "''"),
        nullable_column("sender_id", Text),
        nullable_column("from_agent", Text),
        # When the primary message could be claimed: its delay, its back-off and a retry by a
        # person move it. This and the next two are NULL in rows from before revision 0009; the
        # facts of reports have the best known values instead (`bullpen.reports.facts.tables`).
        nullable_column("available_at", Millis),
        # When the conversation began.
        nullable_column("conversation_at", Millis),
        # Its number among the runs of the primary message, from 1, however each ended.
        nullable_column("attempt", Integer),
        # The number of messages that it made dead.
        later_column("dead", Integer, "0"),
        # The back-off that it gave the primary message, in milliseconds; NULL if none.
        nullable_column("wait", Millis),
        Index("ix_attempts_message_id", "message_id"),
        Index("ix_attempts_conversation", "conversation_id"),
    ],
)
"""One run of a batch by a provider, and how it ended."""


DEATH_CAUSES = table(
    "death_causes",
    lambda: [
        column("fingerprint", Text, primary_key=True),
        column("kind", Text),
        # The newest error, as an example.
        column("error", Text),
        column("deaths", Integer),
        column("first_at", Millis),
        column("last_at", Millis),
        nullable_column("told_at", Millis),
    ],
)
"""One cause of dead letters, their number, and the time of the last notice to the owner."""


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
"""One agent's part of an aggregate response."""


def _columns() -> list[Column[Any]]:
    """The columns of a message, live or archived."""
    return [
        column("message_id", Text),
        column("channel", Text),
        column("sender", Text),
        nullable_column("sender_id", Text),
        column("message", Text),
        column("agent", Text),
        nullable_column("from_agent", Text),
        nullable_column("files", Text),
        column("status", Text),
        column("retry_count", Integer),
        column("crash_count", Integer),
        nullable_column("last_error", Text),
        nullable_column("error_kind", Text),
        nullable_column("claimed_by", Text),
        nullable_column("claim_token", Text),
        column("conversation_id", Text),
        nullable_column("parent_id", Text),
        column("hop", Integer),
        nullable_column("team_id", Text),
        nullable_column("reply_to", Text),
        # One run answers the pending messages of an agent with the same key.
        nullable_column("batch_key", Text),
        column("priority", Integer),
        column("sort_key", Millis),
        # False until `available_at`; only ready messages are in the claim's index.
        column("ready", Boolean),
        # When it was first due; a back-off changes only `available_at`.
        column("due_at", Millis),
        column("available_at", Millis),
        nullable_column("deadline", Millis),
        nullable_column("payload", Text),
        nullable_column("schema", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
        # The number of its runs, the one in progress included. No action of a person resets it.
        later_column("runs", Integer, "0"),
        # When the first message of its conversation was created; NULL in some rows from before
        # revision 0009: see `core.message.Message.began_at`.
        nullable_column("conversation_at", Millis),
    ]


MESSAGES = table(
    "messages",
    lambda: [
        column("id", BigId, primary_key=True),
        *_columns(),
        # The API key that sent it, if not the owner's, and its size, for the limits of the key.
        nullable_column("key_id", Text),
        nullable_column("key_bytes", Integer),
        # When it was written, by the platform's clock.
        nullable_column("written_at", Millis),
        partial_index(
            "ix_messages_key",
            *("key_id", "status", "key_bytes"),
            where="key_id IS NOT NULL AND status IN ('pending', 'held')",
        ),
        Index("uq_messages_message_id", "message_id", unique=True),
        # The first message of a conversation is found by its message_id, the conversation's id.
        partial_index(
            "ix_messages_conversation",
            "conversation_id",
            where="conversation_id <> message_id",
        ),
        partial_index(
            "ix_messages_ready",
            *("agent", "sort_key", "id", "batch_key"),
            where="status = 'pending' AND ready = 1",
            postgresql="status = 'pending' AND ready",
        ),
        partial_index(
            "ix_messages_delayed",
            "available_at",
            where="status = 'pending' AND ready = 0",
            postgresql="status = 'pending' AND NOT ready",
        ),
        partial_index(
            "ix_messages_deadline",
            "deadline",
            where="status = 'pending' AND deadline IS NOT NULL",
        ),
        partial_index(
            "ix_messages_waiting_for_people",
            *("status", "updated_at", "id"),
            where="status IN ('dead', 'held')",
        ),
        partial_index(
            "ix_messages_finished",
            *("updated_at", "id"),
            where="status IN ('completed', 'cancelled', 'expired')",
        ),
    ],
    sqlite_autoincrement=True,  # ids of deleted rows are never reused
)
"""A message for one agent."""

MESSAGES_ARCHIVE = table(
    "messages_archive",
    lambda: [
        column("id", BigId, primary_key=True, autoincrement=False),
        *_columns(),
        # When it was written, by the platform's clock.
        nullable_column("written_at", Millis),
        Index("uq_messages_archive_message_id", "message_id", unique=True),
        Index("ix_messages_archive_conversation", "conversation_id"),
        Index("ix_messages_archive_updated_at", "updated_at", "id"),
    ],
)
"""A message that finished more than a day ago, kept for search and duplicate checks."""


RECEIPTS = table(
    "receipts",
    lambda: [
        column("channel", Text, primary_key=True),
        column("event_id", Text, primary_key=True),
        column("message_id", Text),
        column("created_at", Millis),
        Index("ix_receipts_created_at", "created_at"),
    ],
    sqlite_with_rowid=False,
)
"""One platform event, and the message that was created from it."""
