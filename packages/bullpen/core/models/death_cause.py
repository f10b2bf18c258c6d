"""death_causes: what messages died of, one row for errors that differ in numbers and ids only."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, MaybeMillis, Millis, table_of


class DeathCauseRow(Base):
    """One cause, how many it killed, and when the owner was told of it last."""

    __tablename__ = "death_causes"
    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    error: Mapped[str]
    """The newest of them, as an example."""
    deaths: Mapped[int]
    first_at: Mapped[Millis]
    last_at: Mapped[Millis]
    told_at: Mapped[MaybeMillis]


DEATH_CAUSES = table_of(DeathCauseRow)
