"""schedules: what is to be said to whom, and when; schedule_runs: what became of each due time."""

from __future__ import annotations

from sqlalchemy import Index, Integer, Text

from bullpen.core.models.base import BigId, Millis, column, maybe, partial_index, table

SCHEDULES = table(
    "schedules",
    lambda: [
        column("id", Text, primary_key=True),
        maybe("label", Text),
        # To whom; of a team's schedule, none: its leader is asked for each time.
        maybe("agent", Text),
        maybe("team_id", Text),
        column("message", Text),
        # Which of the next three says when.
        column("kind", Text),
        maybe("cron", Text),
        maybe("every", Millis),
        maybe("at", Millis),
        column("zone", Text),
        # From when on: the first due time comes after it.
        column("anchor", Millis),
        # Where the answer goes, together with `sender_id` and `reply_to`.
        column("channel", Text),
        column("sender", Text),
        maybe("sender_id", Text),
        maybe("reply_to", Text),
        column("missed", Text),
        column("overlap", Text),
        column("jitter", Millis),
        column("state", Text),
        # Why it is not active, in words for a person.
        maybe("reason", Text),
        # The next due time, of an active one.
        maybe("due_at", Millis),
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
        maybe("due_at", Millis),
        # The last of the due times that were missed; `due_at` is then the first.
        maybe("until", Millis),
        column("fired_at", Millis),
        column("outcome", Text),
        # How many due times this stands for.
        column("times", Integer),
        maybe("message_id", Text),
        maybe("reason", Text),
        Index("uq_schedule_runs_due", "schedule_id", "due_at", unique=True),
        Index("ix_schedule_runs_schedule", "schedule_id", "id"),
    ],
    sqlite_autoincrement=True,
)
"""What became of a due time, or of several that passed while nobody was there."""
