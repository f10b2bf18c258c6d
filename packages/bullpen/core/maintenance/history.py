"""Deletes what was said long ago, to and by agents and in rooms."""

from __future__ import annotations

from bullpen.core.maintenance.old import Old
from bullpen.core.models import AGENT_MESSAGES, CHAT_MESSAGES
from bullpen.core.store.base import Store

SAID = Old(AGENT_MESSAGES, "created_at")
POSTED = Old(CHAT_MESSAGES, "created_at")


def history(store: Store) -> str:
    """Delete all that is older than `history_days`."""
    days = store.settings.history_days
    return f"{SAID.forget(store, days)} said, {POSTED.forget(store, days)} posts deleted"
