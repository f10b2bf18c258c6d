"""workers: the processes that are alive, and where to wake them."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Millis, table_of


class WorkerRow(Base):
    """One running process."""

    __tablename__ = "workers"
    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    host: Mapped[str]
    pid: Mapped[int]
    wake: Mapped[str | None]
    """The Unix socket that takes hints, on SQLite."""
    started_at: Mapped[Millis]
    heartbeat_at: Mapped[Millis]


WORKERS = table_of(WorkerRow)
