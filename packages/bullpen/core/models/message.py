"""messages: the way in; messages_archive: where finished ones go after a day."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, BigId, Id, MaybeMillis, Millis, partial_index, table_of


class MessageColumns:
    """The columns of a message, live or archived."""

    message_id: Mapped[str]
    channel: Mapped[str]
    sender: Mapped[str]
    sender_id: Mapped[str | None]
    message: Mapped[str]
    agent: Mapped[str]
    from_agent: Mapped[str | None]
    files: Mapped[str | None]
    status: Mapped[str]
    retry_count: Mapped[int]
    crash_count: Mapped[int]
    last_error: Mapped[str | None]
    error_kind: Mapped[str | None]
    claimed_by: Mapped[str | None]
    claim_token: Mapped[str | None]
    conversation_id: Mapped[str]
    parent_id: Mapped[str | None]
    hop: Mapped[int]
    team_id: Mapped[str | None]
    reply_to: Mapped[str | None]
    batch_key: Mapped[str | None]
    """Waiting messages of one agent that share it are answered by one run."""
    priority: Mapped[int]
    sort_key: Mapped[Millis]
    ready: Mapped[bool]
    """False until `available_at` has come; only ready messages stand in the claim's index."""
    due_at: Mapped[Millis]
    """When it was first due; a back-off moves `available_at`, and not this."""
    available_at: Mapped[Millis]
    deadline: Mapped[MaybeMillis]
    payload: Mapped[str | None]
    schema: Mapped[str | None]
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]


class MessageRow(MessageColumns, Base):
    """A message for one agent."""

    __tablename__ = "messages"
    id: Mapped[Id]
    __table_args__ = (
        Index("uq_messages_message_id", "message_id", unique=True),
        # The root of a conversation is found by its message_id, which is the conversation's id.
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
        {"sqlite_autoincrement": True},  # an id is never given twice, whatever was deleted
    )


class ArchivedMessageRow(MessageColumns, Base):
    """A message that was finished more than a day ago, kept for search and duplicates."""

    __tablename__ = "messages_archive"
    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    __table_args__ = (
        Index("uq_messages_archive_message_id", "message_id", unique=True),
        Index("ix_messages_archive_conversation", "conversation_id"),
        Index("ix_messages_archive_updated_at", "updated_at", "id"),
    )


MESSAGES = table_of(MessageRow)
ARCHIVE = table_of(ArchivedMessageRow)
