"""api_keys: who may use the API, and for what; audit_log: what was done with it."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from bullpen.core.models.base import Base, Id, MaybeMillis, Millis, table_of


class ApiKeyRow(Base):
    """A key, a browser that was let in, or the one-time link that lets it in."""

    __tablename__ = "api_keys"
    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    name: Mapped[str]
    hash: Mapped[str]
    """Of the secret, which is stored nowhere."""
    scopes: Mapped[str]
    """Their names, with blanks between."""
    agents: Mapped[str | None]
    """The agents that it reaches, with blanks between; NULL is all."""
    created_at: Mapped[Millis]
    expires_at: Mapped[MaybeMillis]
    used_at: Mapped[MaybeMillis]
    """When it was last used, to the minute."""
    revoked_at: Mapped[MaybeMillis]
    __table_args__ = (Index("uq_api_keys_hash", "hash", unique=True),)


class AuditRow(Base):
    """One thing that was done over the API, or refused to one who is known."""

    __tablename__ = "audit_log"
    id: Mapped[Id]
    key_id: Mapped[str]
    key_name: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    outcome: Mapped[str]
    """`done`, or the code of the error."""
    request_id: Mapped[str]
    address: Mapped[str]
    created_at: Mapped[Millis]


API_KEYS = table_of(ApiKeyRow)
AUDIT_LOG = table_of(AuditRow)
