"""lanes: one agent's queue. Its row is the claim: one run at a time, whatever the processors."""

from __future__ import annotations

from sqlalchemy import Boolean, Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, partial_index, table

LANES = table(
    "lanes",
    lambda: [
        column("agent", Text, primary_key=True),
        # True if workers outside of Bullpen answer it, and no processor does.
        column("outside", Boolean),
        column("state", Text),
        # Why it is not active, in words for a person.
        nullable_column("reason", Text),
        column("ordering", Text),
        column("batching", Text),
        nullable_column("max_depth", Integer),
        column("overflow", Text),
        column("max_attempts", Integer),
        # How many messages are pending, kept in every transaction that changes it.
        column("pending", Integer),
        # The sort key of what to claim next; NULL while there is nothing or the lane may not run.
        nullable_column("head_key", Millis),
        # Set while a provider's rate limit makes the whole lane wait.
        nullable_column("not_before", Millis),
        nullable_column("claim_token", Text),
        nullable_column("claimed_by", Text),
        # When it was last claimed: who has waited longest is served first.
        column("claimed_at", Millis),
        nullable_column("lease_expires_at", Millis),
        # The ids of the claimed messages, a JSON list, the primary first.
        nullable_column("batch", Text),
        column("created_at", Millis),
        column("updated_at", Millis),
        partial_index(
            "ix_lanes_claimable",
            *("claimed_at", "head_key"),
            where="head_key IS NOT NULL AND outside = 0",
            postgresql="head_key IS NOT NULL AND NOT outside",
        ),
        partial_index("ix_lanes_not_before", "not_before", where="not_before IS NOT NULL"),
    ],
)
"""The queue of one agent and the claim on it."""
