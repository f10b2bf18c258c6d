"""Watches the dead letters, and says so when there are more of them."""

from __future__ import annotations

import logging
import re

from sqlalchemy import bindparam, select

from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.queue.status import queue_status
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

log = logging.getLogger(__name__)

LAST: Statement[tuple[str | None]] = Statement(
    select(SYSTEM_AGENTS.c.last_result).where(SYSTEM_AGENTS.c.name == bindparam("name"))
)


def dead_letters(store: Store) -> str:
    """Compare with the last look."""
    with store.read() as tx:
        dead = queue_status(tx).dead
        row = tx.one(LAST, {"name": "dead_letters"})
    before = re.match(r"\d+", (row[0] if row else None) or "")
    grown = dead - int(before.group() if before else 0)
    if grown > 0:
        log.warning("%d more dead letters, %d in all: bullpen queue status", grown, dead)
    return f"{dead} dead, {grown:+d}"
