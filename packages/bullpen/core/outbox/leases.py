"""Leases: a client takes the responses that are due on its channel, to deliver them.

A lease counts as an attempt. It does not if it ends before a part was begun, because nothing was
tried: the attempt passes to the next lease. A response that no client begins to deliver, in
`MAX_LAPSES` leases in a row, is dead.

The functions of `core.outbox.delivery` take the token of a lease.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, bindparam, case, false, func, select, update

from bullpen.core.clock import SECOND
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import Delivery
from bullpen.core.outbox.hold import on_hold
from bullpen.core.outbox.transitions import (
    DueResponse,
    expire_response,
    fail_response,
    mark_response_unknown,
    move_response,
    pending,
)
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_line

R = RESPONSES.c

MAX_LAPSES = 50
"""The most leases in a row that end before a part is begun. Then the response stops its clients."""

MAX_ENDED = 500
"""The most responses that one lease ends because they need no delivery any more."""

# A lease moves `available_at` to its expiry, when an abandoned response becomes due again.
SELECT_DUE: Statement[DueResponse] = Statement(
    lambda: (
        select(*columns(DueResponse, RESPONSES))
        .where(
            R.channel == bindparam("channel"),
            pending(),
            R.available_at <= bindparam("now"),
            ~on_hold(),
        )
        .order_by(R.id)
        .limit(bindparam("limit"))
        .with_for_update(skip_locked=True)
    ),
    DueResponse,
)

EXPIRE_LEASES: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(
            R.channel == bindparam("channel"),
            pending(),
            R.claimed_by == bindparam("worker"),
            R.claim_token.is_not(None),
        )
        .values(available_at=bindparam("now"), lease_expires_at=bindparam("now"))
    )
)

EXPIRE_LOOK_UPS: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(
            R.channel == bindparam("channel"),
            R.status == const(ResponseState.UNKNOWN.value),
            R.recover_at.is_not(None),
            R.claimed_by == bindparam("worker"),
        )
        .values(recover_at=bindparam("now"))
    )
)


def _has_lapsed(*, yes: ColumnElement[int], no: ColumnElement[int]) -> ColumnElement[int]:
    """One value if the lease before has lapsed, and another one if its client ended it."""
    return case((R.claim_token.is_not(None), yes), else_=no)


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
            delivery_attempts=R.delivery_attempts + _has_lapsed(yes=const(0), no=const(1)),
            lapses=_has_lapsed(yes=func.coalesce(R.lapses, const(0)) + const(1), no=const(0)),
        )
        .returning(*columns(Delivery, RESPONSES))
    ),
    Delivery,
)


def expire_leases(tx: Transaction, channel: str, workers: Sequence[str]) -> None:
    """End the leases of clients of this channel that have ended, and those of their look-ups."""
    values = [{"channel": channel, "worker": each, "now": tx.now} for each in workers]
    if values:
        tx.write_each(EXPIRE_LEASES, values)
        tx.write_each(EXPIRE_LOOK_UPS, values)


def lease_responses(
    tx: Transaction, channel: str, worker: str, limit: int = 10, lease: int | None = None
) -> list[Delivery]:
    """Lease the due responses of a channel, oldest first; none while there is a hold.

    A response becomes `unknown` if its client stopped while sending a part, and dead if it has
    expired or stops its clients.
    """
    for text in (channel, worker):
        check_line(text, tx.settings.message_bytes, "the channel or the worker")
    until = tx.now + (tx.settings.delivery_lease_seconds * SECOND if lease is None else lease)
    leased: list[Delivery] = []
    ended = 0
    while len(leased) < limit and ended < MAX_ENDED:
        wanted = limit - len(leased)
        due = tx.all(SELECT_DUE, {"channel": channel, "now": tx.now, "limit": wanted})
        before = ended
        for each in due:
            if _end_due(tx, each):
                ended += 1
                continue
            values = {"response": each.id, "token": tx.ids.token(str(each.id)), "until": until}
            delivery = tx.one(LEASE_RESPONSE, {**values, "worker": worker})
            leased += [] if delivery is None else [delivery]
        if len(due) < wanted or ended == before:
            break
    return leased


def _end_due(tx: Transaction, due: DueResponse) -> bool:
    """End a due response that needs no delivery any more; False if it must be sent."""
    lapsed = due.claim_token is not None
    tried = due.delivery_attempts - (1 if lapsed else 0)
    if due.sending:
        mark_response_unknown(tx, due.id, "the channel client stopped while it sent a part")
    elif due.complete:
        # Its client stopped after the last part, or a receipt came later.
        move_response(tx, due.id, ResponseState.PENDING, ResponseState.ACKED)
    elif due.expires_at <= tx.now:
        expire_response(tx, due.id)
    elif lapsed and (due.lapses or 0) + 1 >= MAX_LAPSES:
        fail_response(tx, due.id, f"no channel client began to send it in {MAX_LAPSES} leases")
    elif tried >= tx.settings.delivery_attempts:
        # `reschedule` reports the error of the last attempt, unless the setting was higher then.
        fail_response(tx, due.id, "no attempt is left")
    else:
        return False
    return True
