"""receipts: the platforms' event ids that were taken in, so that a redelivery is not a message."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Millis, table_of


class ReceiptRow(Base):
    """One platform event, and the message that it became."""

    __tablename__ = "receipts"
    channel: Mapped[str] = mapped_column(primary_key=True)
    event_id: Mapped[str] = mapped_column(primary_key=True)
    message_id: Mapped[str]
    created_at: Mapped[Millis]
    __table_args__ = (
        Index("ix_receipts_created_at", "created_at"),
        {"sqlite_with_rowid": False},
    )


RECEIPTS = table_of(ReceiptRow)
