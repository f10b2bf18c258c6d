"""The delivery of a response by a channel's client: lease, parts, receipts and outcome.

A client leases responses. For each part it calls `begin_part`, sends the part, and calls `end_part`
with the platform's receipt. After the last part it calls `ack`. If the client stops between
`begin_part` and `end_part`, the part may have arrived: the response becomes `unknown` and is not
sent again automatically.

The functions of a client take the token of its lease. `move_response`, `expire_response` and
`mark_response_unknown` take a row id; they are for operators and maintenance.
"""

from __future__ import annotations

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
from bullpen.core.models.base import const, decode_texts, encode_list
from bullpen.core.outbox.hold import on_hold
from bullpen.core.retry import RetryPolicy
from bullpen.core.states import RESPONSE_STATES, ResponseState
from bullpen.core.store.paging import parse_row_id
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_line, check_text

R = RESPONSES.c

STALE_DELIVERY_HINT = "Stop sending this response; Bullpen handles it."

_TOKEN = re.compile(r"[0-9]{1,18}\.[a-z0-9]{1,64}")

_EVENT_OF_STATE = {
    ResponseState.ACKED: ResponseDelivered,
    ResponseState.DEAD: ResponseDead,
    ResponseState.UNKNOWN: ResponseUnknown,
    ResponseState.PENDING: ResponseRetried,
}


@dataclass(frozen=True, slots=True)
class Response:
    """The fields of a response for both its client and its readers."""

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
    seq: int
    delivery_attempts: int
    parts_sent: int
    possible_duplicate: bool
    expires_at: int


@dataclass(frozen=True, slots=True)
class Delivery(Response):
    """A leased response."""

    reply_to: str | None
    claim_token: str | None


def pending() -> ColumnElement[bool]:
    """Whether a response is pending."""
    return R.status == const(ResponseState.PENDING.value)


def _is_leased() -> tuple[ColumnElement[bool], ...]:
    """Whether a response is still leased under this token."""
    return (R.id == bindparam("response"), R.claim_token == bindparam("token"), pending())


# A lease moves `available_at` to its expiry, when an abandoned response becomes due again.
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

LOCK_DELIVERY: Statement[Delivery] = Statement(
    lambda: select(*columns(Delivery, RESPONSES)).where(*_is_leased()).with_for_update(), Delivery
)

SELECT_PART_RECEIPTS: Statement[tuple[str | None]] = Statement(
    lambda: select(R.part_receipts).where(*_is_leased())
)

RENEW_LEASE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(*_is_leased())
        .values(
            sending=bindparam("is_sending"),
            parts_sent=R.parts_sent + bindparam("parts"),
            part_receipts=bindparam("receipts"),
            available_at=bindparam("until"),
            lease_expires_at=bindparam("until"),
        )
    )
)

RESCHEDULE_RESPONSE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(*_is_leased())
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


def lease_responses(
    tx: Transaction, channel: str, worker: str, limit: int = 10, lease: int | None = None
) -> list[Delivery]:
    """Lease the due responses of a channel, oldest first; none while there is a hold.

    A response becomes `unknown` if its client stopped while sending a part, and dead if it has
    expired or was abandoned too often.
    """
    for text in (channel, worker):
        check_line(text, tx.settings.message_bytes, "the channel or the worker")
    until = tx.now + (tx.settings.delivery_lease_seconds * SECOND if lease is None else lease)
    leased = []
    for response, expires, sending, attempts in tx.all(
        SELECT_DUE, {"channel": channel, "now": tx.now, "limit": limit}
    ):
        if sending:
            mark_response_unknown(tx, response, "the channel client stopped while it sent a part")
        elif expires <= tx.now:
            expire_response(tx, response)
        elif attempts >= tx.settings.delivery_attempts:
            # Abandoned by its clients; `reschedule` would have reported an error of its own.
            _fail_response(tx, response, "the channel client stopped at every attempt")
        else:
            token = tx.ids.token(str(response))
            values = {"response": response, "token": token, "worker": worker, "until": until}
            leased.append(tx.one(LEASE_RESPONSE, values))
    return [each for each in leased if each is not None]


def begin_part(tx: Transaction, token: str) -> Delivery:
    """Record that a part is about to be sent, and renew the lease. Commit this before sending."""
    delivery = _lock_delivery(tx, token)
    _renew(tx, delivery, token, sending=True, receipts=_receipts(tx, delivery, token))
    return delivery


def end_part(tx: Transaction, token: str, receipt: str) -> None:
    """Record the platform's receipt for the part, and renew the lease."""
    check_text(receipt, tx.settings.message_bytes, "the receipt")
    delivery = _lock_delivery(tx, token)
    receipts = [*_receipts(tx, delivery, token), receipt]
    _renew(tx, delivery, token, sending=False, receipts=receipts, parts=1)


def ack(tx: Transaction, token: str) -> None:
    """End the delivery: the platform accepted the last part."""
    move_response(tx, _lock_delivery(tx, token).id, ResponseState.PENDING, ResponseState.ACKED)


def reschedule(
    tx: Transaction,
    token: str,
    error: str,
    *,
    retry_after: int | None = None,
    counted: bool = True,
) -> None:
    """Retry later; after the last counted attempt the response is dead.

    An attempt that hit a rate limit is not counted.
    """
    check_text(error, tx.settings.message_bytes, "the error")
    delivery = _lock_delivery(tx, token)
    if counted and delivery.delivery_attempts >= tx.settings.delivery_attempts:
        _fail_response(tx, delivery.id, error)
        return
    policy = RetryPolicy.from_settings(tx.settings, tx.chance)
    at = tx.now + policy.delay(delivery.delivery_attempts, retry_after)
    if at >= delivery.expires_at:
        _fail_response(tx, delivery.id, f"expired before the next attempt; last error: {error}")
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
    """End the delivery: the recipient does not exist or refuses the message."""
    check_text(error, tx.settings.message_bytes, "the error")
    _fail_response(tx, _lock_delivery(tx, token).id, error)


def mark_unknown(tx: Transaction, token: str, error: str) -> None:
    """End the delivery: a part was sent without a receipt, so it may have arrived."""
    check_text(error, tx.settings.message_bytes, "the error")
    mark_response_unknown(tx, _lock_delivery(tx, token).id, error)


def move_response(
    tx: Transaction,
    response: int,
    source: ResponseState,
    target: ResponseState,
    error: str | None = None,
) -> bool:
    """Change the state of a response; False if it was not in the first state."""
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
    """Make a pending response dead: it was not delivered in time."""
    return _fail_response(tx, response, "expired before it was delivered")


def mark_response_unknown(tx: Transaction, response: int, error: str) -> bool:
    """Make a pending response unknown: it may have arrived."""
    return move_response(tx, response, ResponseState.PENDING, ResponseState.UNKNOWN, error)


def _lock_delivery(tx: Transaction, token: str) -> Delivery:
    """Lock the response that is leased under this token, as every function of a client does."""
    if not _TOKEN.fullmatch(token):
        raise StaleToken(f"{token[:60]!r} is not the token of a delivery", hint=STALE_DELIVERY_HINT)
    delivery = tx.one(LOCK_DELIVERY, {"response": _response_of_token(token), "token": token})
    if delivery is None:
        raise StaleToken(f"delivery {token} has ended", hint=STALE_DELIVERY_HINT)
    return delivery


def _response_of_token(token: str) -> int:
    """The id of the response that a token leases; 0, an id without a response, if it is invalid."""
    return parse_row_id(token.partition(".")[0]) or 0


def _receipts(tx: Transaction, delivery: Delivery, token: str) -> list[str]:
    row = tx.one(SELECT_PART_RECEIPTS, {"response": delivery.id, "token": token})
    return [] if row is None else decode_texts(row[0])


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
            "receipts": encode_list(receipts),
            "until": tx.now + tx.settings.delivery_lease_seconds * SECOND,
        },
    )


def _fail_response(tx: Transaction, response: int, error: str) -> bool:
    return move_response(tx, response, ResponseState.PENDING, ResponseState.DEAD, error)
