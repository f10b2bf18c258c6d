"""system_agents: the maintenance loops, who runs each and what it did last."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, MaybeMillis, Millis, table_of


class SystemAgentRow(Base):
    """One maintenance loop; the row is its election."""

    __tablename__ = "system_agents"
    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str | None]
    """Which process runs it just now."""
    lease_expires_at: Mapped[Millis]
    running_since: Mapped[MaybeMillis]
    next_run_at: Mapped[Millis]
    last_run_at: Mapped[MaybeMillis]
    last_duration: Mapped[int | None]
    last_result: Mapped[str | None]
    last_error: Mapped[str | None]
    failures: Mapped[int]
    """How often it failed in a row."""
    cursor: Mapped[Millis]
    """Up to which moment it has looked, if it goes through something bit by bit."""


SYSTEM_AGENTS = table_of(SystemAgentRow)
