"""responses: the way out; responses_archive: where delivered ones go after a day."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, BigId, Id, MaybeMillis, Millis, partial_index, table_of


class ResponseColumns:
    """The columns of a response, live or archived."""

    message_id: Mapped[str]
    channel: Mapped[str]
    sender: Mapped[str]
    sender_id: Mapped[str | None]
    message: Mapped[str]
    original_message: Mapped[str]
    agent: Mapped[str]
    files: Mapped[str | None]
    # `metadata` is taken on declarative classes, not in the table.
    metadata_: Mapped[str | None] = mapped_column("metadata")
    status: Mapped[str]
    conversation_id: Mapped[str]
    reply_to: Mapped[str | None]
    seq: Mapped[int]
    delivery_attempts: Mapped[int]
    parts_sent: Mapped[int]
    part_receipts: Mapped[str | None]
    """What the platform answered to each part, a JSON list."""
    sending: Mapped[bool]
    """True while a part is on its way: if its sender dies now, nobody knows whether it arrived."""
    possible_duplicate: Mapped[bool]
    """True when it is sent again after an unknown outcome."""
    claim_token: Mapped[str | None]
    claimed_by: Mapped[str | None]
    lease_expires_at: Mapped[MaybeMillis]
    available_at: Mapped[Millis]
    expires_at: Mapped[Millis]
    last_error: Mapped[str | None]
    created_at: Mapped[Millis]
    acked_at: Mapped[MaybeMillis]


class ResponseRow(ResponseColumns, Base):
    """An answer for one person on one channel."""

    __tablename__ = "responses"
    id: Mapped[Id]
    __table_args__ = (
        Index("ix_responses_message_id", "message_id"),
        # A lease moves `available_at` to its own end, so that one order serves new and abandoned.
        partial_index(
            "ix_responses_pending",
            *("channel", "available_at", "id", "expires_at"),
            where="status = 'pending'",
        ),
        partial_index(
            "ix_responses_waiting_for_people",
            *("status", "id"),
            where="status IN ('dead', 'unknown')",
        ),
        partial_index("ix_responses_acked", "acked_at", "id", where="status = 'acked'"),
    )


class ArchivedResponseRow(ResponseColumns, Base):
    """A response that was delivered more than a day ago."""

    __tablename__ = "responses_archive"
    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    __table_args__ = (
        Index("ix_responses_archive_message_id", "message_id"),
        Index("ix_responses_archive_acked_at", "acked_at", "id"),
    )


RESPONSES = table_of(ResponseRow)
RESPONSES_ARCHIVE = table_of(ArchivedResponseRow)
