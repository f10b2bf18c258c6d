"""schedules, heartbeats and their runs."""

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
        # How many runs a day are allowed.
        column("budget", Integer),
        # After this many silent runs in a row it is paused; 0 is never.
        column("max_silent", Integer),
        # Where its answers go; empty is the owner's address.
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
"""When one agent is woken, and how its runs went."""

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
"""One heartbeat run: sent or skipped, and its result."""


SCHEDULES = table(
    "schedules",
    lambda: [
        column("id", Text, primary_key=True),
        nullable_column("label", Text),
        # To whom; of a team's schedule, none: its leader is asked for each time.
        nullable_column("agent", Text),
        nullable_column("team_id", Text),
        column("message", Text),
        # Which of the next three says when.
        column("kind", Text),
        nullable_column("cron", Text),
        nullable_column("every", Millis),
        nullable_column("at", Millis),
        column("zone", Text),
        # From when on: the first due time comes after it.
        column("anchor", Millis),
        # Where the answer goes, together with `sender_id` and `reply_to`.
        column("channel", Text),
        column("sender", Text),
        nullable_column("sender_id", Text),
        nullable_column("reply_to", Text),
        column("missed", Text),
        column("overlap", Text),
        column("jitter", Millis),
        column("state", Text),
        # Why it is not active, for people to read.
        nullable_column("reason", Text),
        # The next due time, of an active one.
        nullable_column("due_at", Millis),
        column("made_by", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
        Index("uq_schedules_label", "label", unique=True),
        partial_index("ix_schedules_due", "due_at", where="state = 'active'"),
    ],
)
"""A text that is put into an agent's queue again and again, or once."""

SCHEDULE_RUNS = table(
    "schedule_runs",
    lambda: [
        column("id", BigId, primary_key=True),
        column("schedule_id", Text),
        # None of a run that a person asked for.
        nullable_column("due_at", Millis),
        # The last of the due times that were missed; `due_at` is then the first.
        nullable_column("until", Millis),
        column("fired_at", Millis),
        column("outcome", Text),
        # How many due times this stands for.
        column("times", Integer),
        nullable_column("message_id", Text),
        nullable_column("reason", Text),
        Index("uq_schedule_runs_due", "schedule_id", "due_at", unique=True),
        Index("ix_schedule_runs_schedule", "schedule_id", "id"),
    ],
    sqlite_autoincrement=True,
)
"""The result of a due time, or of several that were missed."""
