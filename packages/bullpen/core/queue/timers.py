"""Timers: delays and deadlines that are over, and lanes that may hand out again."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam, exists, func, or_, select, true, update

from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.message import MessageExpired
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lanes import LOCK_LANE_IF_FREE, refresh_lane
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

# A claim checks the timers first, by one probe of three small indexes: no loop is needed for them.

M = MESSAGES.c
L = LANES.c
_WAITING_LANE = LANES.alias("waiting").c

SWEEP_MESSAGES = 500
"""How many messages one transaction moves."""


def _pending() -> ColumnElement[bool]:
    return M.status == const(MessageState.PENDING.value)


def _delayed() -> tuple[ColumnElement[bool], ...]:
    return (_pending(), ~M.ready)


def _overdue() -> tuple[ColumnElement[bool], ...]:
    return (_pending(), M.deadline.is_not(None))


def anything_due() -> ColumnElement[bool]:
    """Whether a timer is due, as a condition of another statement."""
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
        .where(M.id == bindparam("message"), _pending())
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
    """Run every timer that is due; gives how many messages and lanes were changed."""
    now = {"now": tx.now}
    expired = tx.all(SELECT_OVERDUE, now)
    arrived = tx.all(SELECT_DELAYS_OVER, now)
    waited = [agent for (agent,) in tx.all(SELECT_LANES_DUE, now)]
    moved = 0
    for agent in sorted({*waited, *(agent for _, agent in (*expired, *arrived))}):
        # A claim has locked its lane before: waiting here for another could be a deadlock.
        if tx.one(LOCK_LANE_IF_FREE, {"agent": agent}) is None:
            continue
        over = sum(_expire_message(tx, each, agent) for each, owner in expired if owner == agent)
        ready = [{"message": each} for each, owner in arrived if owner == agent]
        moved += (agent in waited) + over + sum(tx.change_each(SET_READY, ready))
        refresh_lane(tx, agent, -over)
    return moved


def next_timer_at(tx: Transaction) -> int | None:
    """When the next delay or rate limit ends; None if there is none."""
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
