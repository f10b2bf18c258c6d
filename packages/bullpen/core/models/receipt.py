"""receipts: the platforms' event ids that were taken in, so that a redelivery is not a message."""

from __future__ import annotations

from sqlalchemy import Index, Text

from bullpen.core.models.base import Millis, column, table

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
"""One platform event, and the message that it became."""
