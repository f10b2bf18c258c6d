"""Ends responses that nobody delivers: expired, abandoned half sent, or never asked for."""

from __future__ import annotations

from functools import partial

from sqlalchemy import ColumnElement, bindparam, select

from bullpen.core.maintenance.batches import in_batches
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.outbox.settle import expire_response, mark_response_unknown, move_response
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

BATCH = 500


def _pending() -> ColumnElement[bool]:
    return R.status == const(ResponseState.PENDING.value)


NEXT_CHANNEL: Statement[tuple[str]] = Statement(
    lambda: (
        select(R.channel)
        .where(_pending(), R.channel > bindparam("after"))
        .order_by(R.channel)
        .limit(const(1))
    )
)

# Walks the waiting responses of one channel in their index, which has all that is asked for.
EXPIRED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            _pending(),
            R.available_at <= bindparam("now"),
            R.expires_at <= bindparam("now"),
        )
        .limit(const(BATCH))
    )
)

ABANDONED_RESPONSES: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(
            R.channel == bindparam("channel"),
            _pending(),
            R.available_at <= bindparam("now"),
            R.sending,
        )
        .limit(const(BATCH))
        .with_for_update(skip_locked=True)
    )
)


def end_stale_deliveries(store: Store) -> str:
    """Look at every channel that has something waiting; nothing runs out while it is held."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return "held: nothing ends before it is let go"
    total = 0
    channel = _next_channel(store, "")
    while channel is not None:
        total += in_batches(store, partial(_end_batch, channel=channel))
        channel = _next_channel(store, channel)
    return f"{total} ended"


def _next_channel(store: Store, after: str) -> str | None:
    with store.read() as tx:
        row = tx.one(NEXT_CHANNEL, {"after": after})
    return None if row is None else row[0]


def _end_batch(tx: Transaction, channel: str) -> int:
    values = {"channel": channel, "now": tx.now}
    lost = tx.all(ABANDONED_RESPONSES, values)
    for (response,) in lost:
        mark_response_unknown(tx, response, "its sender died while a part was on its way")
    over = tx.all(EXPIRED_RESPONSES, values)
    for (response,) in over:
        if channel in PULL_CHANNELS:
            move_response(tx, response, ResponseState.PENDING, ResponseState.ACKED)
        else:
            expire_response(tx, response)
    return len(lost) + len(over)
