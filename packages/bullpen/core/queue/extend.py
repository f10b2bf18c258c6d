"""extend: the run is alive, its lease goes on."""

from __future__ import annotations

from sqlalchemy import bindparam, update

from bullpen.core.errors import StaleToken
from bullpen.core.models import LANES
from bullpen.core.queue.lane import agent_of_token
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

EXTEND_LEASE: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(LANES.c.agent == bindparam("lane"), LANES.c.claim_token == bindparam("token"))
        .values(lease_expires_at=bindparam("expires"))
    )
)


def extend(tx: Transaction, token: str, lease: int | None = None) -> int:
    """Renew the lease of this claim; gives its new end."""
    expires = tx.now + (tx.settings.lease_seconds * 1000 if lease is None else lease)
    values = {"lane": agent_of_token(token), "token": token, "expires": expires}
    if tx.change(EXTEND_LEASE, values) == 0:
        raise StaleToken(f"the claim {token} is over")
    return expires
