"""responses and their archive, and holds on delivery."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, Index, Integer, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, partial_index, table

HOLDS = table(
    "holds",
    lambda: [
        column("name", Text, primary_key=True),
        # The reason, for people.
        column("reason", Text),
        column("held_at", Millis),
    ],
)
"""A hold on the deliveries of the whole store."""


def _columns() -> list[Column[Any]]:
    """The columns of a response, live or archived."""
    return [
        column("message_id", Text),
        column("channel", Text),
        column("sender", Text),
        nullable_column("sender_id", Text),
        column("message", Text),
        column("original_message", Text),
        column("agent", Text),
        nullable_column("files", Text),
        nullable_column("metadata", Text),
        column("status", Text),
        column("conversation_id", Text),
        nullable_column("reply_to", Text),
        column("seq", Integer),
        column("delivery_attempts", Integer),
        column("parts_sent", Integer),
        # The platform's receipt for each part, a JSON list of `core.outbox.parts.PartReceipt`.
        nullable_column("part_receipts", Text),
        # True while a part is being sent; if its client stops now, the outcome is unknown.
        column("sending", Boolean),
        # When the last part began, and which part it is: JSON of `core.outbox.parts.SendingPart`.
        nullable_column("sending_since", Millis),
        nullable_column("sending_part", Text),
        # True when it is sent again after an unknown outcome.
        column("possible_duplicate", Boolean),
        nullable_column("claim_token", Text),
        nullable_column("claimed_by", Text),
        nullable_column("lease_expires_at", Millis),
        # The leases in a row that ended before a part was begun.
        nullable_column("lapses", Integer),
        column("available_at", Millis),
        column("expires_at", Millis),
        nullable_column("last_error", Text),
        # While the outcome is unknown: the next look-up on the platform, the number of those done,
        # and when people are notified; NULL once they were.
        nullable_column("recover_at", Millis),
        nullable_column("recoveries", Integer),
        nullable_column("tell_at", Millis),
        column("created_at", Millis),
        nullable_column("acked_at", Millis),
    ]


RESPONSES = table(
    "responses",
    lambda: [
        column("id", BigId, primary_key=True),
        *_columns(),
        Index("ix_responses_message_id", "message_id"),
        # Due ones are leased in the order of their ids, so that a response that waited for a retry
        # is not overtaken by later ones of its chat. A lease moves `available_at` to its expiry.
        partial_index(
            "ix_responses_pending",
            *("channel", "id", "available_at", "expires_at"),
            where="status = 'pending'",
        ),
        partial_index(
            "ix_responses_waiting_for_people",
            *("status", "id"),
            where="status IN ('dead', 'unknown')",
        ),
        partial_index(
            "ix_responses_recover",
            *("channel", "recover_at", "id"),
            where="status = 'unknown' AND recover_at IS NOT NULL",
        ),
        partial_index("ix_responses_acked", "acked_at", "id", where="status = 'acked'"),
    ],
)
"""A response to one person on one channel."""

RESPONSES_ARCHIVE = table(
    "responses_archive",
    lambda: [
        column("id", BigId, primary_key=True, autoincrement=False),
        *_columns(),
        Index("ix_responses_archive_message_id", "message_id"),
        Index("ix_responses_archive_acked_at", "acked_at", "id"),
    ],
)
"""A response that was delivered more than a day ago."""
