"""Timers: delays and deadlines of messages, and delays of lanes.

Every claim first checks for due timers with one probe of three small indexes, so no loop is needed.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, exists, func, or_, select, true, update

from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.message import MessageExpired
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lanes import LOCK_LANE_IF_FREE, pending, refresh_lane
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c
L = LANES.c
_WAITING_LANE = LANES.alias("waiting").c

SWEEP_MESSAGES = 500
"""The most delayed and the most overdue messages that one transaction changes."""


def _delayed() -> tuple[ColumnElement[bool], ...]:
    return (pending(), ~M.ready)


def _overdue() -> tuple[ColumnElement[bool], ...]:
    return (pending(), M.deadline.is_not(None))


def anything_due() -> ColumnElement[bool]:
    """Whether a timer is due, as a condition in another statement."""
    return or_(
        exists().where(*_delayed(), M.available_at <= bindparam("now")),
        exists().where(*_overdue(), M.deadline <= bindparam("now")),
        exists().where(_WAITING_LANE.not_before <= bindparam("now")),
    )


SELECT_DELAYS_OVER: Statement[tuple[int, str]] = Statement(
    lambda: (
        select(M.id, M.agent)
        .where(*_delayed(), M.available_at <= bindparam("now"))
        .order_by(M.available_at)
        .limit(const(SWEEP_MESSAGES))
    )
)

SET_READY: Statement[None] = Statement(
    lambda: update(MESSAGES).where(M.id == bindparam("message"), *_delayed()).values(ready=true())
)

SELECT_OVERDUE: Statement[tuple[int, str]] = Statement(
    lambda: (
        select(M.id, M.agent)
        .where(*_overdue(), M.deadline <= bindparam("now"))
        .order_by(M.deadline)
        .limit(const(SWEEP_MESSAGES))
    )
)

EXPIRE_MESSAGE: Statement[tuple[str, str]] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), pending())
        .values(status=const(MessageState.EXPIRED.value), updated_at=bindparam("now"))
        .returning(M.message_id, M.conversation_id)
    )
)

SELECT_LANES_DUE: Statement[tuple[str]] = Statement(
    lambda: select(L.agent).where(L.not_before <= bindparam("now")).order_by(L.not_before)
)

SELECT_NEXT_TIMES: Statement[tuple[int | None, int | None]] = Statement(
    lambda: select(
        select(M.available_at)
        .where(*_delayed())
        .order_by(M.available_at)
        .limit(const(1))
        .scalar_subquery(),
        select(func.min(L.not_before)).where(L.not_before.is_not(None)).scalar_subquery(),
    )
)


def run_timers(tx: Transaction) -> int:
    """Run every due timer; returns the number of changed messages and lanes."""
    now = {"now": tx.now}
    overdue = tx.all(SELECT_OVERDUE, now)
    delays_over = tx.all(SELECT_DELAYS_OVER, now)
    lanes_due = [agent for (agent,) in tx.all(SELECT_LANES_DUE, now)]
    changed = 0
    for agent in sorted({*lanes_due, *(agent for _, agent in (*overdue, *delays_over))}):
        # A claim already holds the lock of its lane, so waiting for another could deadlock.
        if tx.one(LOCK_LANE_IF_FREE, {"agent": agent}) is None:
            continue
        expired = sum(_expire_message(tx, each, agent) for each, owner in overdue if owner == agent)
        now_ready = [{"message": each} for each, owner in delays_over if owner == agent]
        changed += (agent in lanes_due) + expired + sum(tx.change_each(SET_READY, now_ready))
        refresh_lane(tx, agent, -expired)
    return changed


def next_timer_at(tx: Transaction) -> int | None:
    """The end of the next delay or rate limit; None if there is none."""
    row = tx.one(SELECT_NEXT_TIMES, {})
    times = [at for at in row or () if at is not None]
    return min(times) if times else None


def _expire_message(tx: Transaction, message: int, agent: str) -> int:
    row = tx.one(EXPIRE_MESSAGE, {"message": message, "now": tx.now})
    if row is None:
        return 0
    message_id, conversation_id = row
    append_event(tx, MessageExpired(MessageRef(agent, conversation_id, message_id)))
    return 1
