"""custom_providers: other services behind a known command line, with their address and key."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Millis, table_of


class CustomProviderRow(Base):
    """What `custom:<id>` stands for."""

    __tablename__ = "custom_providers"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    harness: Mapped[str]
    base_url: Mapped[str]
    api_key: Mapped[str]
    """A secret: never shown, and given to nobody but the command line that needs it."""
    model: Mapped[str]
    created_at: Mapped[Millis]
    updated_at: Mapped[Millis]


CUSTOM_PROVIDERS = table_of(CustomProviderRow)
