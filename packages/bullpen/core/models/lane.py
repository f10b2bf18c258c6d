"""lanes: one agent's queue. Its row is the claim: one run at a time, whatever the processors."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, MaybeMillis, Millis, partial_index, table_of


class LaneRow(Base):
    """The queue of one agent and the claim on it."""

    __tablename__ = "lanes"
    agent: Mapped[str] = mapped_column(primary_key=True)
    outside: Mapped[bool]
    """True if workers outside of Bullpen answer it, and no processor does."""
    state: Mapped[str]
    reason: Mapped[str | None]
    """Why it is not active, in words for a person."""
    ordering: Mapped[str]
    batching: Mapped[str]
    max_depth: Mapped[int | None]
    overflow: Mapped[str]
    max_attempts: Mapped[int]
    pending: Mapped[int]
    """How many messages are pending, kept in every transaction that changes it."""
    head_key: Mapped[MaybeMillis]
    """The sort key of what to claim next; NULL while there is nothing or the lane may not run."""
    not_before: Mapped[MaybeMillis]
    """Set while a provider's rate limit makes the whole lane wait."""
    claim_token: Mapped[str | None]
    claimed_by: Mapped[str | None]
    claimed_at: Mapped[Millis]
    """When it was last claimed: who has waited longest is served first."""
    lease_expires_at: Mapped[MaybeMillis]
    batch: Mapped[str | None]
    """The ids of the claimed messages, a JSON list, the primary first."""
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]
    __table_args__ = (
        partial_index(
            "ix_lanes_claimable",
            *("claimed_at", "head_key"),
            where="head_key IS NOT NULL AND outside = 0",
            postgresql="head_key IS NOT NULL AND NOT outside",
        ),
        partial_index("ix_lanes_not_before", "not_before", where="not_before IS NOT NULL"),
    )


LANES = table_of(LaneRow)
