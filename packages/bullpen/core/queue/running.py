"""What runs: the claimed messages, by whom and since when."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import select

from bullpen.core.models import LANES
from bullpen.core.queue.browse import MessageRecord, list_messages_by_number
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c

SELECT_CLAIMS: Statement[tuple[str, int, str, int]] = Statement(
    lambda: (
        select(L.batch, L.claimed_at, L.claimed_by, L.lease_expires_at)
        .where(L.lease_expires_at.is_not(None))
        .order_by(L.claimed_at, L.agent)
    )
)


@dataclass(frozen=True, slots=True)
class RunningMessage:
    """A message that is being answered."""

    message: MessageRecord
    worker: str
    claimed_at: int
    lease_expires_at: int


def list_running(tx: Transaction) -> list[RunningMessage]:
    """All of them, the longest first; those of one run follow its primary."""
    return [
        RunningMessage(message, worker, claimed_at, lease)
        for batch, claimed_at, worker, lease in tx.all(SELECT_CLAIMS, {})
        for message in list_messages_by_number(tx, json.loads(batch))
    ]
