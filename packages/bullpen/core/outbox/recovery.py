"""Look-ups of parts whose outcome is unknown: did the platform take the part or not?

A response becomes `unknown` if its client stopped while it sent a part, or if the platform did not
answer. The channel's client leases such responses, asks the platform, and reports the answer with
`found`, `not_sent`, `look_again` or `cannot_tell`. An echo or a status callback of the platform,
which may come at any time, is reported with `prove`.

People are notified if a look-up cannot tell, or after ten minutes. A later look-up may still
settle it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, false, null, select, update

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import StaleToken
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.response import ResponseSettled, ResponseUnknown
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import (
    STALE_DELIVERY_HINT,
    Delivery,
    check_delivery_token,
)
from bullpen.core.outbox.hold import on_hold
from bullpen.core.outbox.parts import SendingPart, decode_receipts, encode_receipts
from bullpen.core.outbox.transitions import MovedResponse, append_outcome, move_response
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_line, check_text

R = RESPONSES.c

LATE_LOOK_UP = 10 * MINUTE
"""The shortest time between two look-ups after people were notified."""

TOO_LONG = "it could not be found out in time whether the part arrived"


@dataclass(frozen=True, slots=True)
class Lookup(Delivery):
    """A response with the state of its look-ups."""

    status: str
    tell_at: int | None
    last_error: str | None
    created_at: int

    @property
    def moved(self) -> MovedResponse:
        """What the event about its outcome says."""
        return MovedResponse(
            id=self.id,
            message_id=self.message_id,
            agent=self.agent,
            conversation_id=self.conversation_id,
            channel=self.channel,
            sender_id=self.sender_id,
            delivery_attempts=self.delivery_attempts,
            parts_sent=self.parts_sent,
            created_at=self.created_at,
        )


def _unknown() -> tuple[ColumnElement[bool], ...]:
    """Whether a response is unknown and to be looked up, in the words of the partial index."""
    return (R.status == const(ResponseState.UNKNOWN.value), R.recover_at.is_not(None))


SELECT_LOOK_UPS: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            *_unknown(),
            R.recover_at <= bindparam("now"),
            ~on_hold(),
        )
        .order_by(R.recover_at, R.id)
        .limit(bindparam("limit"))
        .with_for_update(skip_locked=True)
    )
)

LEASE_LOOK_UP: Statement[Delivery] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), *_unknown())
        .values(
            claim_token=bindparam("token"),
            claimed_by=bindparam("worker"),
            lease_expires_at=bindparam("until"),
            recover_at=bindparam("until"),
        )
        .returning(*columns(Delivery, RESPONSES))
    ),
    Delivery,
)

LOCK_LOOK_UP: Statement[Lookup] = Statement(
    lambda: (
        select(*columns(Lookup, RESPONSES))
        .where(R.id == bindparam("response"), R.claim_token == bindparam("token"), *_unknown())
        .with_for_update()
    ),
    Lookup,
)

LOCK_RESPONSE: Statement[Lookup] = Statement(
    lambda: (
        select(*columns(Lookup, RESPONSES))
        .where(R.id == bindparam("response"), R.channel == bindparam("channel"))
        .with_for_update()
    ),
    Lookup,
)

COUNT_PART: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"))
        .values(
            sending=false(),
            parts_sent=R.parts_sent + const(1),
            part_receipts=bindparam("receipts"),
        )
    )
)

CONTINUE_DELIVERY: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), R.status == const(ResponseState.UNKNOWN.value))
        .values(
            status=const(ResponseState.PENDING.value),
            claim_token=null(),
            lease_expires_at=null(),
            recover_at=null(),
            recoveries=null(),
            tell_at=null(),
            available_at=bindparam("now"),
            delivery_attempts=R.delivery_attempts - bindparam("uncounted"),
        )
    )
)

END_LOOK_UP: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), R.status == const(ResponseState.UNKNOWN.value))
        .values(
            claim_token=null(),
            lease_expires_at=null(),
            recover_at=bindparam("recover"),
            recoveries=bindparam("count"),
            tell_at=bindparam("tell"),
            last_error=bindparam("error"),
        )
    )
)

HASTEN_LOOK_UPS: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(
            R.channel == bindparam("channel"),
            *_unknown(),
            R.recover_at > bindparam("now"),
            R.claim_token.is_(None),
        )
        .values(recover_at=bindparam("now"))
    )
)

SELECT_UNTOLD: Statement[Lookup] = Statement(
    lambda: (
        select(*columns(Lookup, RESPONSES))
        .where(*_unknown(), R.tell_at <= bindparam("now"))
        .limit(bindparam("limit"))
        .with_for_update(skip_locked=True)
    ),
    Lookup,
)

SET_TOLD: Statement[None] = Statement(
    lambda: update(RESPONSES).where(R.id == bindparam("response")).values(tell_at=null())
)


SELECT_RECEIPTS: Statement[tuple[str]] = Statement(
    lambda: select(R.part_receipts).where(
        R.channel == bindparam("channel"),
        R.status == const(ResponseState.ACKED.value),
        R.acked_at >= bindparam("acked_since"),
        R.part_receipts.is_not(None),
    )
)


def lease_unknown(tx: Transaction, channel: str, worker: str, limit: int = 10) -> list[Delivery]:
    """Lease the unknown responses of a channel whose look-up is due; none while there is a hold.

    They stay `unknown`. A client that stops during a look-up leaves it to the next one.
    """
    for text in (channel, worker):
        check_line(text, tx.settings.message_bytes, "the channel or the worker")
    until = tx.now + tx.settings.delivery_lease_seconds * SECOND
    due = tx.all(SELECT_LOOK_UPS, {"channel": channel, "now": tx.now, "limit": limit})
    values = [
        {"response": id_, "token": tx.ids.token(str(id_)), "worker": worker, "until": until}
        for (id_,) in due
    ]
    leased = tx.one_each(LEASE_LOOK_UP, values) if values else []
    return [each for each in leased if each is not None]


def found(tx: Transaction, token: str, receipt: str, *, last: bool = False) -> None:
    """Count the part: the platform has it. The rest is sent, without a label.

    The response is acked if it was the last part, by `last` or by what was recorded at its begin.
    """
    check_text(receipt, tx.settings.message_bytes, "the receipt")
    _count_part(tx, _lock_look_up(tx, token), receipt, last=last)


def not_sent(tx: Transaction, token: str) -> None:
    """Send the part again, without a label: the platform does not have it.

    After the last attempt the response is dead.
    """
    delivery = _lock_look_up(tx, token)
    if delivery.delivery_attempts >= tx.settings.delivery_attempts:
        error = "the platform did not take it at any attempt"
        move_response(tx, delivery.id, ResponseState.UNKNOWN, ResponseState.DEAD, error)
        return
    _continue(tx, delivery, arrived=False)


def cannot_tell(tx: Transaction, token: str, error: str) -> None:
    """End the look-ups: the platform cannot tell. A person decides whether to send it again."""
    check_text(error, tx.settings.message_bytes, "the error")
    _end_look_up(tx, _lock_look_up(tx, token), None, error)


def look_again(tx: Transaction, token: str, after: int) -> bool:
    """Look up again after so many milliseconds; False if there is no further look-up.

    After ten minutes people are notified, and look-ups are rarer, until the response expires.
    """
    delivery = _lock_look_up(tx, token)
    at = tx.now + after
    if delivery.tell_at is None or at > delivery.tell_at:
        at = max(at, tx.now + LATE_LOOK_UP)
        goes_on = at < delivery.expires_at
        _end_look_up(tx, delivery, at if goes_on else None, TOO_LONG)
        return goes_on
    count = (delivery.recoveries or 0) + 1
    values = {"response": delivery.id, "count": count, "error": delivery.last_error}
    tx.write(END_LOOK_UP, {**values, "recover": at, "tell": delivery.tell_at})
    return True


def prove(tx: Transaction, channel: str, response: int, part: int, receipt: str) -> bool:
    """Count a part that the platform itself confirms; False if that changes nothing.

    The part counts once, in any state, also if a look-up said that it was not sent. A delivery that
    a client is sending continues under its token.

    Of a part that a person retried, and that was begun again, it does not count: it may be about
    the attempt before, whose text ended elsewhere. The receipt or a look-up settles the new one.
    """
    check_text(receipt, tx.settings.message_bytes, "the receipt")
    row = tx.one(LOCK_RESPONSE, {"response": response, "channel": channel})
    if row is None or row.status == ResponseState.ACKED:
        return False
    begun = row.part
    if begun is None or begun.part != part or part != row.parts_sent:
        return False
    if row.possible_duplicate and (row.sending or row.status == ResponseState.UNKNOWN):
        return False
    _count_part(tx, row, receipt)
    return True


def receipts_since(tx: Transaction, channel: str, since: int) -> frozenset[str]:
    """The platform's receipts of the responses of a channel that were delivered since a time."""
    rows = tx.all(SELECT_RECEIPTS, {"channel": channel, "acked_since": since})
    return frozenset(each.id for (text,) in rows for each in decode_receipts(text))


def look_up_now(tx: Transaction, channel: str) -> int:
    """Make all later look-ups of the channel due now, because the platform can be reached again."""
    count = tx.change(HASTEN_LOOK_UPS, {"channel": channel, "now": tx.now})
    if count:
        tx.wake(f"responses:{channel}")
    return count


def tell_overdue(tx: Transaction, limit: int) -> int:
    """Notify people of the responses that stayed unknown for ten minutes; returns how many.

    This also covers channels whose client is stopped, or does no look-ups.
    """
    overdue = tx.all(SELECT_UNTOLD, {"now": tx.now, "limit": limit})
    for each in overdue:
        tx.write(SET_TOLD, {"response": each.id})
        append_outcome(tx, ResponseUnknown, each.moved, each.last_error)
    return len(overdue)


def _lock_look_up(tx: Transaction, token: str) -> Lookup:
    values = {"response": check_delivery_token(token), "token": token}
    delivery = tx.one(LOCK_LOOK_UP, values)
    if delivery is None:
        raise StaleToken(f"look-up {token} has ended", hint=STALE_DELIVERY_HINT)
    return delivery


def _count_part(tx: Transaction, row: Lookup, receipt: str, *, last: bool = False) -> None:
    """Count the part that was begun, and continue the delivery unless a client does."""
    begun = row.part
    part = begun if begun and begun.part == row.parts_sent else SendingPart(row.parts_sent)
    receipts = encode_receipts((*row.receipts, part.receipt(receipt)))
    tx.write(COUNT_PART, {"response": row.id, "receipts": receipts})
    state = ResponseState(row.status)
    leased = state is ResponseState.PENDING and row.claim_token is not None
    if leased or state is ResponseState.DEAD:
        return
    if last or part.last:
        move_response(tx, row.id, state, ResponseState.ACKED)
    elif state is ResponseState.UNKNOWN:
        _continue(tx, row, arrived=True)


def _continue(tx: Transaction, row: Lookup, *, arrived: bool) -> None:
    # The next lease counts an attempt; one whose part arrived did not fail.
    uncounted = 1 if arrived else 0
    tx.write(CONTINUE_DELIVERY, {"response": row.id, "now": tx.now, "uncounted": uncounted})
    answer = "yes" if arrived else "no"
    append_event(tx, ResponseSettled(_about(row), channel=row.channel, error=None, arrived=answer))
    tx.wake(f"responses:{row.channel}")


def _end_look_up(tx: Transaction, row: Lookup, again: int | None, error: str) -> None:
    """Notify people, unless they were notified before, and look up again at this time or never."""
    count = (row.recoveries or 0) + 1
    values = {"response": row.id, "count": count, "error": error}
    tx.write(END_LOOK_UP, {**values, "recover": again, "tell": None})
    if row.tell_at is not None:
        append_outcome(tx, ResponseUnknown, row.moved, error)


def _about(row: Lookup) -> MessageRef:
    return MessageRef(row.agent, row.conversation_id, row.message_id)
