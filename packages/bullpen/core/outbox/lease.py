"""lease: a channel client takes responses to deliver."""

from __future__ import annotations

from sqlalchemy import bindparam, false, select, update

from bullpen.core.clock import SECOND
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.delivery import Delivery, DeliveryTuple, columns, pending
from bullpen.core.outbox.hold import on_hold
from bullpen.core.outbox.settle import expire_response, mark_response_unknown, move_response
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

R = RESPONSES.c

# A leased response has moved `available_at` to the end of its lease: the abandoned come again.
SELECT_DUE: Statement[tuple[int, int, bool, int]] = Statement(
    lambda: (
        select(R.id, R.expires_at, R.sending, R.delivery_attempts)
        .where(
            R.channel == bindparam("channel"),
            pending(),
            R.available_at <= bindparam("now"),
            ~on_hold(),
        )
        .order_by(R.available_at, R.id)
        .limit(bindparam("limit"))
        .with_for_update(skip_locked=True)
    )
)

LEASE_RESPONSE: Statement[DeliveryTuple] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), pending())
        .values(
            claim_token=bindparam("token"),
            claimed_by=bindparam("worker"),
            sending=false(),
            lease_expires_at=bindparam("until"),
            available_at=bindparam("until"),
            delivery_attempts=R.delivery_attempts + 1,
        )
        .returning(*columns())
    )
)


def lease_responses(
    tx: Transaction, channel: str, worker: str, limit: int = 10, lease: int | None = None
) -> list[Delivery]:
    """Take the responses of this channel that are due, the oldest first; none while they are held.

    One that was abandoned while a part was on its way becomes `unknown` and is not sent again by
    itself; one that is no longer worth delivering is dead.
    """
    for text in (channel, worker):
        check_text(text, tx.settings.message_bytes, "the channel or the worker")
    until = tx.now + (tx.settings.delivery_lease_seconds * SECOND if lease is None else lease)
    taken = []
    for response, expires, sending, tries in tx.all(
        SELECT_DUE, {"channel": channel, "now": tx.now, "limit": limit}
    ):
        if sending:
            mark_response_unknown(tx, response, "its sender died while a part was on its way")
        elif expires <= tx.now:
            expire_response(tx, response)
        elif tries >= tx.settings.delivery_attempts:
            # Rescheduled ones end with their own error: these were left by clients that died.
            given_up = "every client that took it died"
            move_response(tx, response, ResponseState.PENDING, ResponseState.DEAD, given_up)
        else:
            token = tx.ids.token(str(response))
            values = {"response": response, "token": token, "worker": worker, "until": until}
            taken.append(tx.one(LEASE_RESPONSE, values))
    return [Delivery(*row) for row in taken if row is not None]
