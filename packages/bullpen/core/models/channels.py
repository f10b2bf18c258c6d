"""chats, senders and the health of channels. A channel here is one account on a platform."""

from __future__ import annotations

from sqlalchemy import Boolean, Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, partial_index, table

CHATS = table(
    "chats",
    lambda: [
        column("channel", Text, primary_key=True),
        # The platform's id.
        column("chat", Text, primary_key=True),
        # True for a chat between one person and the bot, false for a group.
        column("direct", Boolean),
        column("name", Text),
        # Who is answered in a group, `members` or `everyone`; NULL: the group is not allowed.
        nullable_column("access", Text),
        nullable_column("allowed_by", Text),
        # The pairing code of a group.
        nullable_column("code", Text),
        nullable_column("code_expires_at", Millis),
        # The last place in the platform's history that was taken in, and its time.
        nullable_column("cursor", Text),
        nullable_column("cursor_at", Millis),
        nullable_column("default_agent", Text),
        # The end of the time in which free text may be sent, where a platform limits it.
        nullable_column("window_until", Millis),
        nullable_column("opted_out_at", Millis),
        # The id of the chat that replaced it.
        nullable_column("migrated_to", Text),
        # The end of a rate limit.
        nullable_column("penalty_until", Millis),
        # The sender id of a direct chat.
        nullable_column("person", Text),
        nullable_column("last_in_at", Millis),
        nullable_column("last_out_at", Millis),
        # The last notice about the chat itself, such as the reply with a pairing code.
        nullable_column("told_at", Millis),
        # The last notice that messages waited while Bullpen was stopped.
        nullable_column("away_told_at", Millis),
        nullable_column("verbosity", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
        partial_index("ix_chats_code", "channel", "code_expires_at", where="code IS NOT NULL"),
    ],
    sqlite_with_rowid=False,
)
"""A chat on a channel."""

SENDERS = table(
    "senders",
    lambda: [
        column("channel", Text, primary_key=True),
        # The platform's id.
        column("sender_id", Text, primary_key=True),
        column("name", Text),
        # NULL until the pairing is approved.
        nullable_column("tier", Text),
        nullable_column("code", Text),
        nullable_column("code_expires_at", Millis),
        # The last reply with a pairing code, and the reply address that it went to.
        nullable_column("told_at", Millis),
        nullable_column("asked_in", Text),
        nullable_column("approved_at", Millis),
        nullable_column("approved_by", Text),
        column("first_at", Millis),
        column("last_at", Millis),
        partial_index("ix_senders_code", "channel", "code_expires_at", where="code IS NOT NULL"),
        partial_index("ix_senders_unpaired", "last_at", where="tier IS NULL"),
    ],
    sqlite_with_rowid=False,
)
"""A person on a channel. The owner in the settings needs no row."""

CHANNEL_HEALTH = table(
    "channel_health",
    lambda: [
        column("channel", Text, primary_key=True),
        column("state", Text),
        # Why it is in this state: a short code, a text, and what to do about it.
        nullable_column("code", Text),
        nullable_column("reason", Text),
        nullable_column("hint", Text),
        column("since", Millis),
        column("paused", Boolean),
        # When the owner was notified that it is down; NULL once it is up again.
        nullable_column("told_at", Millis),
        # The process that serves it.
        nullable_column("worker", Text),
        nullable_column("last_event_at", Millis),
        nullable_column("last_message_at", Millis),
        nullable_column("last_receipt_at", Millis),
        nullable_column("last_probe_at", Millis),
        nullable_column("probe_ms", Integer),
        nullable_column("connections", Integer),
        nullable_column("caught_up_at", Millis),
        # The result of the last catch-up, for people.
        nullable_column("caught_up", Text),
        # The findings of the last check, a JSON list.
        nullable_column("findings", Text),
        # Wrong pairing codes in a row, and until when none is accepted.
        nullable_column("wrong_codes", Integer),
        nullable_column("wrong_code_at", Millis),
        nullable_column("locked_until", Millis),
        column("updated_at", Millis),
    ],
    sqlite_with_rowid=False,
)
"""The state of one channel, as the process that serves it reports it."""
