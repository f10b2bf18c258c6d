"""What a channel client says of a response that it has leased.

`begin_part`, send it, `end_part` with the platform's receipt, for each part; then `ack`. If the
process dies between begin and end, the outcome is unknown, and Bullpen says so.
"""

from __future__ import annotations

import json

from sqlalchemy import bindparam, false, null, select, update

from bullpen.core.backoff import backoff
from bullpen.core.clock import SECOND
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.delivery import RENEW_LEASE, Delivery, fenced, lock_delivery
from bullpen.core.outbox.settle import mark_response_unknown, move_response
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

R = RESPONSES.c

SELECT_PART_RECEIPTS: Statement[tuple[str | None]] = Statement(
    lambda: select(R.part_receipts).where(*fenced())
)

RESCHEDULE_RESPONSE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(*fenced())
        .values(
            claim_token=null(),
            lease_expires_at=null(),
            sending=false(),
            available_at=bindparam("at"),
            delivery_attempts=R.delivery_attempts - bindparam("uncounted"),
            last_error=bindparam("error"),
        )
    )
)


def begin_part(tx: Transaction, token: str) -> Delivery:
    """A part is about to be sent. Commit this before sending; it renews the lease as well."""
    delivery = lock_delivery(tx, token)
    _renew(tx, delivery, token, sending=True, receipts=_receipts(tx, delivery, token))
    return delivery


def end_part(tx: Transaction, token: str, receipt: str) -> None:
    """The platform took the part, and this is what it answered."""
    check_text(receipt, tx.settings.message_bytes, "the receipt")
    delivery = lock_delivery(tx, token)
    receipts = [*_receipts(tx, delivery, token), receipt]
    _renew(tx, delivery, token, sending=False, receipts=receipts, parts=1)


def ack(tx: Transaction, token: str) -> None:
    """The platform took the last part."""
    move_response(tx, lock_delivery(tx, token).id, ResponseState.PENDING, ResponseState.ACKED)


def reschedule(
    tx: Transaction,
    token: str,
    error: str,
    *,
    retry_after: int | None = None,
    counted: bool = True,
) -> None:
    """It could not be sent now. After the last counted try it is dead; a rate limit counts not."""
    check_text(error, tx.settings.message_bytes, "the error")
    delivery = lock_delivery(tx, token)
    if counted and delivery.delivery_attempts >= tx.settings.delivery_attempts:
        move_response(tx, delivery.id, ResponseState.PENDING, ResponseState.DEAD, error)
        return
    settings = tx.settings
    wait = backoff(
        max(1, delivery.delivery_attempts),
        settings.retry_base_seconds * SECOND,
        settings.retry_max_seconds * SECOND,
        tx.chance,
    )
    at = tx.now + (wait if retry_after is None else max(0, retry_after))
    if at >= delivery.expires_at:
        move_response(
            tx,
            delivery.id,
            ResponseState.PENDING,
            ResponseState.DEAD,
            f"expired before the next try; the last one: {error}",
        )
        return
    tx.write(
        RESCHEDULE_RESPONSE,
        {
            "response": delivery.id,
            "token": token,
            "at": at,
            "uncounted": 0 if counted else 1,
            "error": error,
        },
    )


def mark_undeliverable(tx: Transaction, token: str, error: str) -> None:
    """It can never be sent: the recipient does not exist, or will not have it."""
    check_text(error, tx.settings.message_bytes, "the error")
    move_response(tx, lock_delivery(tx, token).id, ResponseState.PENDING, ResponseState.DEAD, error)


def mark_unknown(tx: Transaction, token: str, error: str) -> None:
    """It was sent and no answer came: it may have arrived or not."""
    check_text(error, tx.settings.message_bytes, "the error")
    mark_response_unknown(tx, lock_delivery(tx, token).id, error)


def _receipts(tx: Transaction, delivery: Delivery, token: str) -> list[str]:
    row = tx.one(SELECT_PART_RECEIPTS, {"response": delivery.id, "token": token})
    return [] if row is None or row[0] is None else [str(each) for each in json.loads(row[0])]


def _renew(
    tx: Transaction,
    delivery: Delivery,
    token: str,
    *,
    sending: bool,
    receipts: list[str],
    parts: int = 0,
) -> None:
    tx.write(
        RENEW_LEASE,
        {
            "response": delivery.id,
            "token": token,
            "is_sending": sending,
            "parts": parts,
            "receipts": json.dumps(receipts),
            "until": tx.now + tx.settings.delivery_lease_seconds * SECOND,
        },
    )
