"""api_keys, audit_log, workers, system_agents and the identity of the store."""

from __future__ import annotations

from sqlalchemy import Index, Integer, Text

from bullpen.core.models.base import BigId, Millis, column, nullable_column, table

API_KEYS = table(
    "api_keys",
    lambda: [
        column("id", Text, primary_key=True),
        column("kind", Text),
        column("name", Text),
        # The hash of the secret, which is not stored.
        column("hash", Text),
        # Their names, separated by spaces.
        column("scopes", Text),
        # The agents that it reaches, separated by spaces; NULL means all.
        nullable_column("agents", Text),
        column("created_at", Millis),
        nullable_column("expires_at", Millis),
        # When it was last used, to the minute.
        nullable_column("used_at", Millis),
        nullable_column("revoked_at", Millis),
        # The key that created it, `owner` for the owner's token, NULL on the machine itself.
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
"""One audited action over the API, allowed or refused."""


SYSTEM_AGENTS = table(
    "system_agents",
    lambda: [
        column("name", Text, primary_key=True),
        # The process that runs it now.
        nullable_column("holder", Text),
        column("lease_expires_at", Millis),
        nullable_column("running_since", Millis),
        column("next_run_at", Millis),
        nullable_column("last_run_at", Millis),
        nullable_column("last_duration", Integer),
        nullable_column("last_result", Text),
        nullable_column("last_error", Text),
        # The number of failures in a row.
        column("failures", Integer),
        # The time up to which it has processed the data, if it works incrementally.
        column("cursor", Millis),
    ],
)
"""One maintenance job; the row is its leader election."""


STORE_IDENTITY = table(
    "store_identity",
    lambda: [column("id", Text, primary_key=True), column("created_at", Millis)],
)
"""The identity of this store: one row, created with the schema, that a backup contains too."""


WORKERS = table(
    "workers",
    lambda: [
        column("id", Text, primary_key=True),
        column("kind", Text),
        column("host", Text),
        column("pid", Integer),
        # Its Unix socket for wake-ups, on SQLite.
        nullable_column("wake", Text),
        column("started_at", Millis),
        column("heartbeat_at", Millis),
    ],
)
"""One running process."""
