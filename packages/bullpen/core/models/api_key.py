"""api_keys: who may use the API, and for what; audit_log: what was done with it."""

from __future__ import annotations

from sqlalchemy import Index, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, table

API_KEYS = table(
    "api_keys",
    lambda: [
        column("id", Text, primary_key=True),
        column("kind", Text),
        column("name", Text),
        # Of the secret, which is stored nowhere.
        column("hash", Text),
        # Their names, with blanks between.
        column("scopes", Text),
        # The agents that it reaches, with blanks between; NULL is all.
        nullable_column("agents", Text),
        column("created_at", Millis),
        nullable_column("expires_at", Millis),
        # When it was last used, to the minute.
        nullable_column("used_at", Millis),
        nullable_column("revoked_at", Millis),
        Index("uq_api_keys_hash", "hash", unique=True),
    ],
)
"""A key, a browser that was let in, or the one-time link that lets it in."""

AUDIT_LOG = table(
    "audit_log",
    lambda: [
        column("id", BigId, primary_key=True),
        column("key_id", Text),
        column("key_name", Text),
        column("action", Text),
        column("target", Text),
        # `done`, or the code of the error.
        column("outcome", Text),
        column("request_id", Text),
        column("address", Text),
        column("created_at", Millis),
    ],
)
"""One thing that was done over the API, or refused to one who is known."""
