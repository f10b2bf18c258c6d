"""Deletes old events, and what messages died of so long ago."""

from __future__ import annotations

from sqlalchemy import bindparam, delete

from bullpen.core.clock import DAY
from bullpen.core.maintenance.old import RetentionRule
from bullpen.core.models import DEATH_CAUSES, EVENTS
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

OLD_EVENTS = RetentionRule(EVENTS, "created_at")

# A row for each cause: there are few.
DELETE_OLD_CAUSES: Statement[None] = Statement(
    lambda: delete(DEATH_CAUSES).where(DEATH_CAUSES.c.last_at <= bindparam("before"))
)


def delete_events(store: Store) -> str:
    """Delete all that is older than `event_days`."""
    days = store.settings.event_days
    deleted = OLD_EVENTS.forget(store, days)
    causes = 0
    if days:
        with store.write(durable=False) as tx:
            causes = tx.change(DELETE_OLD_CAUSES, {"before": tx.now - days * DAY})
    return f"{deleted} events, {causes} causes of death deleted"
