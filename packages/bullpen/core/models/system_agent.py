"""system_agents: the maintenance loops, who runs each and what it did last."""

from __future__ import annotations

from sqlalchemy import Integer, Text

from bullpen.core.models.base import Millis, column, maybe, table

SYSTEM_AGENTS = table(
    "system_agents",
    lambda: [
        column("name", Text, primary_key=True),
        # Which process runs it just now.
        maybe("holder", Text),
        column("lease_expires_at", Millis),
        maybe("running_since", Millis),
        column("next_run_at", Millis),
        maybe("last_run_at", Millis),
        maybe("last_duration", Integer),
        maybe("last_result", Text),
        maybe("last_error", Text),
        # How often it failed in a row.
        column("failures", Integer),
        # Up to which moment it has looked, if it goes through something bit by bit.
        column("cursor", Millis),
    ],
)
"""One maintenance loop; the row is its election."""
