"""workers: the processes that are alive, and where to wake them."""

from __future__ import annotations

from sqlalchemy import Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, table

WORKERS = table(
    "workers",
    lambda: [
        column("id", Text, primary_key=True),
        column("kind", Text),
        column("host", Text),
        column("pid", Integer),
        # The Unix socket that takes hints, on SQLite.
        nullable_column("wake", Text),
        column("started_at", Millis),
        column("heartbeat_at", Millis),
    ],
)
"""One running process."""
