"""reap: leases that nobody renewed. Their processor died with the run; the messages wait again."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from bullpen.core.message import ErrorKind
from bullpen.core.models import LANES
from bullpen.core.outcome import Failure
from bullpen.core.queue.fail import fail
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# Reads all lanes, of which there are as many as agents: an index would cost every claim a page.
EXPIRED: Statement[tuple[str, str, int]] = Statement(
    select(LANES.c.claim_token, LANES.c.claimed_by, LANES.c.lease_expires_at)
    .where(LANES.c.lease_expires_at <= bindparam("now"))
    .order_by(LANES.c.agent)
    .with_for_update(skip_locked=True)
)


def reap(tx: Transaction) -> int:
    """Take back every claim whose lease is over; gives how many there were."""
    expired = tx.all(EXPIRED, {"now": tx.now})
    for token, worker, at in expired:
        error = f"{worker} was not heard of for {tx.now - at} ms after its lease"
        fail(tx, token, Failure(kind=ErrorKind.CRASH, error=error))
    return len(expired)
