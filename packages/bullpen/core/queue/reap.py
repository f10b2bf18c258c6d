"""reap: leases that nobody renewed. Their processor died with the run; the messages wait again."""

from __future__ import annotations

from sqlalchemy import Select, bindparam, select

from bullpen.core.message import ErrorKind
from bullpen.core.models import LANES
from bullpen.core.outcome import Failure
from bullpen.core.queue.fail import fail
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c


def _expired() -> Select[tuple[str, str, int]]:
    return select(L.claim_token, L.claimed_by, L.lease_expires_at).where(
        L.lease_expires_at <= bindparam("now")
    )


# Reads all lanes, of which there are as many as agents: an index would cost every claim a page.
SELECT_EXPIRED_LEASES: Statement[tuple[str, str, int]] = Statement(
    lambda: _expired().order_by(L.agent).with_for_update(skip_locked=True)
)

SELECT_EXPIRED_LEASE_OF_AGENT: Statement[tuple[str, str, int]] = Statement(
    lambda: _expired().where(L.agent == bindparam("agent")).with_for_update(skip_locked=True)
)


def expire_leases(tx: Transaction, agent: str | None = None) -> int:
    """Take back every claim whose lease is over, or this agent's; gives how many there were."""
    if agent is None:
        expired = tx.all(SELECT_EXPIRED_LEASES, {"now": tx.now})
    else:
        expired = tx.all(SELECT_EXPIRED_LEASE_OF_AGENT, {"now": tx.now, "agent": agent})
    for token, worker, at in expired:
        error = f"{worker} was not heard of for {tx.now - at} ms after its lease"
        fail(tx, token, Failure(kind=ErrorKind.CRASH, error=error))
    return len(expired)
