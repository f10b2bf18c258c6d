"""Deletes what was said long ago, to and by agents and in rooms."""

from __future__ import annotations

from bullpen.core.maintenance.old import RetentionRule
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.store.base import Store

OLD_AGENT_MESSAGES = RetentionRule(AGENT_MESSAGES, "created_at")
OLD_CHAT_MESSAGES = RetentionRule(CHAT_MESSAGES, "created_at")


def delete_history(store: Store) -> str:
    """Delete all that is older than `history_days`."""
    days = store.settings.history_days
    return f"{OLD_AGENT_MESSAGES.forget(store, days)} said, {OLD_CHAT_MESSAGES.forget(store, days)} posts deleted"
