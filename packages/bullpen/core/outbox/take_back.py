"""take back: every lease on responses ends, for those who held them are no more."""

from __future__ import annotations

from sqlalchemy import bindparam, null, select, update

from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import pending
from bullpen.core.outbox.settle import mark_response_unknown
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

# Reads all that waits: it is asked once in the life of a store.
SELECT_LEASED: Statement[tuple[int, bool]] = Statement(
    lambda: select(R.id, R.sending).where(pending(), R.claim_token.is_not(None)).order_by(R.id)
)
RELEASE_RESPONSE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), pending())
        .values(
            claim_token=null(),
            claimed_by=null(),
            lease_expires_at=null(),
            available_at=bindparam("now"),
            delivery_attempts=R.delivery_attempts - const(1),
        )
    )
)


def release_responses(tx: Transaction, reason: str) -> int:
    """Let each wait again, and count no try; one half sent is `unknown`. Gives how many it was."""
    leased = tx.all(SELECT_LEASED, {})
    for response, sending in leased:
        if sending:
            mark_response_unknown(tx, response, reason)
        else:
            tx.write(RELEASE_RESPONSE, {"response": response, "now": tx.now})
    return len(leased)
