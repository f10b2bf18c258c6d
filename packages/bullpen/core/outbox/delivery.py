"""Delivery of a response: lease, parts, receipts, and how it ends."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, false, null, select, update

from bullpen.core.clock import SECOND
from bullpen.core.errors import StaleToken
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.response import (
    ResponseDead,
    ResponseDelivered,
    ResponseRetried,
    ResponseUnknown,
)
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import on_hold
from bullpen.core.retry import RetryPolicy
from bullpen.core.states import RESPONSE_STATES, ResponseState
from bullpen.core.store.paging import parse_row_id
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

R = RESPONSES.c

_TOKEN = re.compile(r"[0-9]{1,18}\.[a-z0-9]{1,64}")


def pending() -> ColumnElement[bool]:
    """Whether a response still waits to be delivered."""
    return R.status == const(ResponseState.PENDING.value)


def fenced() -> tuple[ColumnElement[bool], ...]:
    """Whether this response is still held by this token."""
    return (R.id == bindparam("response"), R.claim_token == bindparam("token"), pending())


@dataclass(frozen=True, slots=True)
class Delivery:
    """A leased response."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    agent: str
    files: str | None
    metadata: str | None
    conversation_id: str
    reply_to: str | None
    seq: int
    delivery_attempts: int
    parts_sent: int
    possible_duplicate: bool
    expires_at: int
    claim_token: str | None


LOCK_DELIVERY: Statement[Delivery] = Statement(
    lambda: select(*columns(Delivery, RESPONSES)).where(*fenced()).with_for_update(), Delivery
)

RENEW_LEASE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(*fenced())
        .values(
            sending=bindparam("is_sending"),
            parts_sent=R.parts_sent + bindparam("parts"),
            part_receipts=bindparam("receipts"),
            available_at=bindparam("until"),
            lease_expires_at=bindparam("until"),
        )
    )
)


def response_of_token(token: str) -> int:
    """The response that this token leases; 0, which is none, for what is not a token."""
    return parse_row_id(token.partition(".")[0]) or 0


def lock_delivery(tx: Transaction, token: str) -> Delivery:
    """The response that this token leases, locked; everything that a client does starts here."""
    if not _TOKEN.fullmatch(token):
        raise StaleToken(f"{token[:60]!r} is not a delivery")
    delivery = tx.one(LOCK_DELIVERY, {"response": response_of_token(token), "token": token})
    if delivery is None:
        raise StaleToken(f"the delivery {token} is not yours any more")
    return delivery


_EVENT_OF_STATE = {
    ResponseState.ACKED: ResponseDelivered,
    ResponseState.DEAD: ResponseDead,
    ResponseState.UNKNOWN: ResponseUnknown,
    ResponseState.PENDING: ResponseRetried,
}

MOVE_RESPONSE: Statement[tuple[str, str, str, str]] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), R.status == bindparam("source"))
        .values(
            status=bindparam("target"),
            claim_token=null(),
            lease_expires_at=null(),
            sending=false(),
            last_error=bindparam("error"),
            acked_at=bindparam("acked"),
        )
        .returning(R.message_id, R.agent, R.conversation_id, R.channel)
    )
)


def move_response(
    tx: Transaction,
    response: int,
    source: ResponseState,
    target: ResponseState,
    error: str | None = None,
) -> bool:
    """Move a response, if it is still where it was; true if it did."""
    assert target in RESPONSE_STATES[source].moves_to
    row = tx.one(
        MOVE_RESPONSE,
        {
            "response": response,
            "source": source.value,
            "target": target.value,
            "error": error,
            "acked": tx.now if target is ResponseState.ACKED else None,
        },
    )
    if row is None:
        return False
    message_id, agent, conversation_id, channel = row
    about = MessageRef(agent, conversation_id, message_id)
    append_event(tx, _EVENT_OF_STATE[target](about, channel=channel, error=error))
    return True


def expire_response(tx: Transaction, response: int) -> bool:
    """It was not delivered while it was worth it."""
    return move_response(
        tx, response, ResponseState.PENDING, ResponseState.DEAD, "expired before it was delivered"
    )


def mark_response_unknown(tx: Transaction, response: int, error: str) -> bool:
    """It was sent, perhaps; nobody knows."""
    return move_response(tx, response, ResponseState.PENDING, ResponseState.UNKNOWN, error)


# What a channel client says of a response that it has leased.
#
# `begin_part`, send it, `end_part` with the platform's receipt, for each part; then `ack`. If the
# process dies between begin and end, the outcome is unknown, and Bullpen says so.

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
    policy = RetryPolicy.from_settings(tx.settings, tx.chance)
    at = tx.now + policy.delay(delivery.delivery_attempts, retry_after)
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

LEASE_RESPONSE: Statement[Delivery] = Statement(
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
        .returning(*columns(Delivery, RESPONSES))
    ),
    Delivery,
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
    return [each for each in taken if each is not None]
