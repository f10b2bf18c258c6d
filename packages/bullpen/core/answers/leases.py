"""Leases of claims: those that expired end, and an outside worker's claim ends them first."""

from __future__ import annotations

from sqlalchemy import Select, bindparam, select

from bullpen.core.answers.complete import fail
from bullpen.core.message import Claim, ErrorKind, Failure
from bullpen.core.models import LANES
from bullpen.core.queue.claim import claim
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_line

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
    """End every claim whose lease has expired, or this agent's; returns how many there were."""
    if agent is None:
        expired = tx.all(SELECT_EXPIRED_LEASES, {"now": tx.now})
    else:
        expired = tx.all(SELECT_EXPIRED_LEASE_OF_AGENT, {"now": tx.now, "agent": agent})
    for token, worker, at in expired:
        error = f"{worker} was not heard of for {tx.now - at} ms after its lease"
        fail(tx, token, Failure(kind=ErrorKind.CRASH, error=error))
    return len(expired)


def claim_for_worker(
    tx: Transaction, worker: str, agent: str, *, limit: int | None = None, lease: int | None = None
) -> Claim | None:
    """Claim this agent's messages, those of a claim whose lease has expired included.

    So an expired lease ends even if no processor runs, only outside workers.
    """
    check_line(worker, tx.settings.message_bytes, "the worker's name")
    expire_leases(tx, agent)
    return claim(tx, worker, agent=agent, limit=limit, lease=lease)
