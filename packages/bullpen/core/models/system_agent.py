"""system_agents: the maintenance loops, who runs each and what it did last."""

from __future__ import annotations

from sqlalchemy import Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, table

SYSTEM_AGENTS = table(
    "system_agents",
    lambda: [
        column("name", Text, primary_key=True),
        # Which process runs it just now.
        nullable_column("holder", Text),
        column("lease_expires_at", Millis),
        nullable_column("running_since", Millis),
        column("next_run_at", Millis),
        nullable_column("last_run_at", Millis),
        nullable_column("last_duration", Integer),
        nullable_column("last_result", Text),
        nullable_column("last_error", Text),
        # How often it failed in a row.
        column("failures", Integer),
        # Up to which moment it has looked, if it goes through something bit by bit.
        column("cursor", Millis),
    ],
)
"""One maintenance loop; the row is its election."""
