"""Deletes the old part of the record of runs."""

from __future__ import annotations

from bullpen.core.maintenance.old import RetentionRule
from bullpen.core.models import ATTEMPTS
from bullpen.core.store.base import Store

OLD_ATTEMPTS = RetentionRule(ATTEMPTS, "finished_at")


def delete_attempts(store: Store) -> str:
    """Delete all that is older than `attempt_days`."""
    return f"{OLD_ATTEMPTS.forget(store, store.settings.attempt_days)} deleted"
