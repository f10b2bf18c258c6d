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
        # Minutes of the day in the owner's time zone; NULL means the whole day.
        nullable_column("active_from", Integer),
        nullable_column("active_until", Integer),
        # The most runs a day.
        column("budget", Integer),
        # The number of silent runs in a row after which it is paused; 0 means never.
        column("max_silent", Integer),
        # The address of its answers; empty means the owner's address.
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
"""The heartbeat of one agent: its times and results."""

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
        # The agent; NULL for a team's schedule, which each time goes to the current leader.
        nullable_column("agent", Text),
        nullable_column("team_id", Text),
        column("message", Text),
        # Which of the next three columns is used.
        column("kind", Text),
        nullable_column("cron", Text),
        nullable_column("every", Millis),
        nullable_column("at", Millis),
        column("zone", Text),
        # The start time; the first due time comes after it.
        column("anchor", Millis),
        # The address of the answer, together with `sender_id` and `reply_to`.
        column("channel", Text),
        column("sender", Text),
        nullable_column("sender_id", Text),
        nullable_column("reply_to", Text),
        column("missed", Text),
        column("overlap", Text),
        column("jitter", Millis),
        column("state", Text),
        # The reason why it is not active, for people.
        nullable_column("reason", Text),
        # The next due time, if it is active.
        nullable_column("due_at", Millis),
        column("made_by", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
        Index("uq_schedules_label", "label", unique=True),
        partial_index("ix_schedules_due", "due_at", where="state = 'active'"),
    ],
)
"""A message that is enqueued for an agent repeatedly, or once."""

SCHEDULE_RUNS = table(
    "schedule_runs",
    lambda: [
        column("id", BigId, primary_key=True),
        column("schedule_id", Text),
        # NULL for a run that a person started.
        nullable_column("due_at", Millis),
        # The last of several missed due times; `due_at` is the first one.
        nullable_column("until", Millis),
        column("fired_at", Millis),
        column("outcome", Text),
        # The number of due times in this row.
        column("times", Integer),
        nullable_column("message_id", Text),
        nullable_column("reason", Text),
        Index("uq_schedule_runs_due", "schedule_id", "due_at", unique=True),
        Index("ix_schedule_runs_schedule", "schedule_id", "id"),
    ],
    sqlite_autoincrement=True,
)
"""The result of a due time, or of several that were missed."""
