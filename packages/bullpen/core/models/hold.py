"""holds: what waits until the owner lets it go. No row, no hold."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Millis, table_of


class HoldRow(Base):
    """Something of the whole store that does not go on by itself."""

    __tablename__ = "holds"
    name: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    """Why, in words for a person."""
    held_at: Mapped[Millis]


HOLDS = table_of(HoldRow)
