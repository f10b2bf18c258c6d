"""What was alive when the backup was made is not alive in what is made of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select, update

from bullpen.core.access.keys import list_keys, revoke_key
from bullpen.core.maintenance.turn import release_job_leases
from bullpen.core.models import API_KEYS, LANES, SYSTEM_AGENTS, WORKERS
from bullpen.core.outbox.take_back import release_responses
from bullpen.core.queue.release import release
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

CLAIMS: Statement[tuple[str]] = Statement(
    lambda: (
        select(LANES.c.claim_token).where(LANES.c.claim_token.is_not(None)).order_by(LANES.c.agent)
    )
)
JOB_HOLDERS: Statement[tuple[str]] = Statement(
    lambda: select(SYSTEM_AGENTS.c.holder).where(SYSTEM_AGENTS.c.holder.is_not(None)).distinct()
)
DELETE_WORKERS: Statement[None] = Statement(lambda: delete(WORKERS))
# Links for browsers that were not used: nobody lists them, and they end within minutes.
REVOKE_LOGIN_LINKS: Statement[None] = Statement(
    lambda: (
        update(API_KEYS).where(API_KEYS.c.revoked_at.is_(None)).values(revoked_at=bindparam("now"))
    )
)


@dataclass(frozen=True, slots=True)
class ResetCounts:
    """How much of what was alive was put to rest."""

    claims: int
    """Runs whose messages wait again."""
    deliveries: int
    keys: int
    """Keys and browsers that open nothing any more."""


def reset_runtime_state(tx: Transaction, reason: str, *, keep_keys: bool) -> ResetCounts:
    """End every claim and lease without blame; nobody is registered, and no old key opens."""
    claims = [token for (token,) in tx.all(CLAIMS, {})]
    for token in claims:
        release(tx, token, reason)
    deliveries = release_responses(tx, reason)
    for (holder,) in tx.all(JOB_HOLDERS, {}):
        release_job_leases(tx, holder)
    tx.write(DELETE_WORKERS, {})
    return ResetCounts(len(claims), deliveries, 0 if keep_keys else _revoke_keys(tx))


def _revoke_keys(tx: Transaction) -> int:
    """One that was revoked since the backup would open again; so none does."""
    keys = [each for each in list_keys(tx) if each.valid(tx.now)]
    for key in keys:
        revoke_key(tx, key.id)
    tx.write(REVOKE_LOGIN_LINKS, {"now": tx.now})
    return len(keys)
