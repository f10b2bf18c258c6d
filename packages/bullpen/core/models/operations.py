"""api_keys, audit_log, workers and system_agents."""

from __future__ import annotations

from sqlalchemy import Index, Integer, Text

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
        # The key that made it, `owner` for the owner's token, NULL if made on the machine.
        nullable_column("made_by", Text),
        Index("ix_api_keys_made_by", "made_by"),
        Index("uq_api_keys_hash", "hash", unique=True),
    ],
)
"""An API key, a browser session, or a one-time login link."""

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
"""One audited action over the API, done or refused."""


SYSTEM_AGENTS = table(
    "system_agents",
    lambda: [
        column("name", Text, primary_key=True),
        # Which process runs it just now.
        nullable_column("holder", Text),
        column("lease_expires_at", Millis),
        nullable_column("running_since", Millis),
        column("next_run_at", Millis),
        nullable_column("last_run_at", Millis),
        nullable_column("last_duration", Integer),
        nullable_column("last_result", Text),
        nullable_column("last_error", Text),
        # How often it failed in a row.
        column("failures", Integer),
        # Up to which moment it has looked, if it goes through something bit by bit.
        column("cursor", Millis),
    ],
)
"""One maintenance job; the row is its leader election."""


WORKERS = table(
    "workers",
    lambda: [
        column("id", Text, primary_key=True),
        column("kind", Text),
        column("host", Text),
        column("pid", Integer),
        # The Unix socket that takes hints, on SQLite.
        nullable_column("wake", Text),
        column("started_at", Millis),
        column("heartbeat_at", Millis),
    ],
)
"""One running process."""
