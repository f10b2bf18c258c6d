"""The delivery of a response by a channel's client: parts, receipts and outcome.

A client leases responses (`core.outbox.leases`). For each part it calls `begin_part`, sends the
part, and calls `end_part` with the platform's receipt. After the last part it calls `ack`. If the
client stops between `begin_part` and `end_part`, the part may have arrived: the response becomes
`unknown`, and `core.outbox.recovery` looks up on the platform whether it did.

These functions take the token of the client's lease; those of `core.outbox.transitions`, which
operators and maintenance use too, take a row id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, bindparam, false, null, select, update

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.clock import SECOND
from bullpen.core.errors import BadNumber, StaleToken
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.parts import (
    PartReceipt,
    SendingPart,
    decode_part,
    decode_receipts,
    encode_part,
    encode_receipts,
)
from bullpen.core.outbox.transitions import (
    fail_response,
    mark_response_unknown,
    move_response,
    pending,
)
from bullpen.core.retry import RetryPolicy
from bullpen.core.states import ResponseState
from bullpen.core.store.paging import parse_row_id
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

R = RESPONSES.c

STALE_DELIVERY_HINT = "Stop sending this response; Bullpen handles it."

_TOKEN = re.compile(r"[0-9]{1,18}\.[a-z0-9]{1,64}")


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
    part_receipts: str | None
    sending: bool
    sending_since: int | None
    sending_part: str | None
    recoveries: int | None
    """The number of look-ups so far, while its outcome is unknown."""

    @property
    def receipts(self) -> tuple[PartReceipt, ...]:
        """The receipts of the parts that were sent."""
        return decode_receipts(self.part_receipts)

    @property
    def upto(self) -> int:
        """The offset in the text at which it continues."""
        return max((each.upto or 0 for each in self.receipts), default=0)

    @property
    def files_sent(self) -> frozenset[int]:
        """The indexes of the files that were sent."""
        return frozenset(each.file for each in self.receipts if each.file is not None)

    def with_receipt(self, receipt: PartReceipt) -> Delivery:
        """This delivery after one more part."""
        receipts = encode_receipts((*self.receipts, receipt))
        return replace(self, part_receipts=receipts, parts_sent=self.parts_sent + 1)

    @property
    def part(self) -> SendingPart | None:
        """The part that was begun last."""
        return decode_part(self.sending_part)


def _is_leased() -> tuple[ColumnElement[bool], ...]:
    """Whether a response is still leased under this token."""
    return (R.id == bindparam("response"), R.claim_token == bindparam("token"), pending())


LOCK_DELIVERY: Statement[Delivery] = Statement(
    lambda: select(*columns(Delivery, RESPONSES)).where(*_is_leased()).with_for_update(), Delivery
)

RENEW_LEASE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(*_is_leased())
        .values(
            sending=bindparam("is_sending"),
            sending_since=bindparam("since"),
            sending_part=bindparam("part"),
            parts_sent=R.parts_sent + bindparam("parts"),
            part_receipts=bindparam("receipts"),
            lapses=const(0),
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


def begin_part(tx: Transaction, token: str, part: SendingPart | None = None) -> Delivery:
    """Record the part that is about to be sent, and renew the lease. Commit this before sending.

    Without a part it is the next one, which can neither be looked up nor continued at an offset.
    """
    delivery = _lock_delivery(tx, token)
    part = part or SendingPart(delivery.parts_sent)
    if part.part != delivery.parts_sent:
        raise BadNumber(
            f"part {part.part} is not the next part of response {delivery.id}",
            hint=f"Send part {delivery.parts_sent}.",
        )
    text = encode_part(part)
    check_text(text, tx.settings.message_bytes, "the part")
    started = replace(delivery, sending=True, sending_since=tx.now, sending_part=text)
    _renew(tx, started, token)
    return started


def note_sending(tx: Transaction, token: str, ref: str) -> None:
    """Record the platform's reference of the upload that is in flight, and renew the lease."""
    check_text(ref, tx.settings.message_bytes, "the reference")
    delivery = _lock_delivery(tx, token)
    if delivery.sending and delivery.part is not None:
        delivery = replace(delivery, sending_part=encode_part(replace(delivery.part, ref=ref)))
    _renew(tx, delivery, token)


def end_part(tx: Transaction, token: str, receipt: PartReceipt) -> None:
    """Record the platform's receipt for the part, and renew the lease.

    A part that `core.outbox.recovery.prove` counted meanwhile is not counted again.
    """
    check_text(receipt.id, tx.settings.message_bytes, "the receipt")
    delivery = _lock_delivery(tx, token)
    part = delivery.part
    if not delivery.sending and part is not None and part.part < delivery.parts_sent:
        _renew(tx, delivery, token)
        return
    receipts = encode_receipts((*delivery.receipts, receipt))
    _renew(tx, replace(delivery, sending=False, part_receipts=receipts), token, parts=1)


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
) -> int | None:
    """Retry later, because a part was not sent; returns when, or None if it is dead.

    It is dead after the last counted attempt. An attempt that hit a rate limit is not counted.
    """
    error = _checked_error(tx, error)
    delivery = _lock_delivery(tx, token)
    if counted and delivery.delivery_attempts >= tx.settings.delivery_attempts:
        fail_response(tx, delivery.id, error)
        return None
    policy = RetryPolicy.from_settings(tx.settings, tx.chance)
    at = tx.now + policy.delay(delivery.delivery_attempts, retry_after)
    return at if _retry_at(tx, delivery, token, error, at, counted=counted) else None


def reschedule_chat(
    tx: Transaction, tokens: Sequence[str], error: str, *, retry_after: int | None = None
) -> None:
    """Retry the deliveries of one chat later, all at the same time, so that none overtakes another.

    No attempt is counted. Deliveries that have ended are left out.
    """
    error = _checked_error(tx, error)
    policy = RetryPolicy.from_settings(tx.settings, tx.chance)
    at = tx.now + policy.delay(1, retry_after)
    for token in tokens:
        delivery = _find_delivery(tx, token)
        if delivery is not None:
            _retry_at(tx, delivery, token, error, at, counted=False)


def _checked_error(tx: Transaction, error: str) -> str:
    """The error as its row has it: the text of a failed request may contain a secret."""
    return outgoing_mask(tx)(check_text(error, tx.settings.message_bytes, "the error"))


def mark_undeliverable(tx: Transaction, token: str, error: str) -> None:
    """End the delivery: the recipient does not exist or refuses the message."""
    error = _checked_error(tx, error)
    fail_response(tx, _lock_delivery(tx, token).id, error)


def mark_unknown(tx: Transaction, token: str, error: str, *, look_up: bool = True) -> None:
    """End the delivery: a part was sent without a receipt, so it may have arrived.

    With `look_up`, the platform is asked before people are notified: see `core.outbox.recovery`.
    """
    error = _checked_error(tx, error)
    mark_response_unknown(tx, _lock_delivery(tx, token).id, error, look_up=look_up)


def check_delivery_token(token: str) -> int:
    """The id of the response that a token leases; raises StaleToken if it is not a token."""
    if not _TOKEN.fullmatch(token):
        raise StaleToken(f"{token[:60]!r} is not the token of a delivery", hint=STALE_DELIVERY_HINT)
    return _response_of_token(token)


def _find_delivery(tx: Transaction, token: str) -> Delivery | None:
    """Lock the response that is leased under this token; None if the delivery has ended."""
    return tx.one(LOCK_DELIVERY, {"response": check_delivery_token(token), "token": token})


def _lock_delivery(tx: Transaction, token: str) -> Delivery:
    """Lock the response that is leased under this token, as every function of a client does."""
    delivery = _find_delivery(tx, token)
    if delivery is None:
        raise StaleToken(f"delivery {token} has ended", hint=STALE_DELIVERY_HINT)
    return delivery


def _response_of_token(token: str) -> int:
    """The id of the response that a token leases; 0, an id without a response, if it is invalid."""
    return parse_row_id(token.partition(".")[0]) or 0


def _renew(tx: Transaction, delivery: Delivery, token: str, *, parts: int = 0) -> None:
    """Write the part and the receipts of this delivery, and renew its lease."""
    tx.write(
        RENEW_LEASE,
        {
            "response": delivery.id,
            "token": token,
            "is_sending": delivery.sending,
            "since": delivery.sending_since,
            "part": delivery.sending_part,
            "parts": parts,
            "receipts": delivery.part_receipts,
            "until": tx.now + tx.settings.delivery_lease_seconds * SECOND,
        },
    )


def _retry_at(
    tx: Transaction, delivery: Delivery, token: str, error: str, at: int, *, counted: bool
) -> bool:
    """Make it due at this time; False if it expires before, and is dead."""
    if at >= delivery.expires_at:
        fail_response(tx, delivery.id, f"expired before the next attempt; last error: {error}")
        return False
    values = {"response": delivery.id, "token": token, "at": at, "error": error}
    tx.write(RESCHEDULE_RESPONSE, {**values, "uncounted": 0 if counted else 1})
    return True
