"""The queue in numbers, from counters and small indexes: never by counting all messages."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from bullpen.core.models import LANES, MESSAGES, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.states import MessageState, ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c
M = MESSAGES.c
R = RESPONSES.c

SELECT_LANE_STATUSES: Statement[
    tuple[str, str, str | None, int, str | None, str | None, int | None]
]
SELECT_LANE_STATUSES = Statement(
    lambda: select(
        *(L.agent, L.state, L.reason, L.pending, L.batch, L.claimed_by, L.lease_expires_at),
    ).order_by(L.agent)
)

_DEAD_OR_HELD = (MessageState.DEAD, MessageState.HELD)

COUNT_DEAD_AND_HELD: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(M.status, func.count())
        .where(M.status.in_([const(each.value) for each in _DEAD_OR_HELD]))
        .group_by(M.status)
    )
)

COUNT_OUTGOING: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).where(R.status == const(ResponseState.PENDING.value))
)


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One agent's lane in numbers."""

    agent: str
    state: str
    reason: str | None
    pending: int
    processing: int
    worker: str | None
    lease_expires_at: int | None


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The whole queue in numbers."""

    pending: int
    processing: int
    dead: int
    held: int
    outgoing: int
    lanes: tuple[LaneStatus, ...]


def queue_status(tx: Transaction) -> QueueStatus:
    """Count what waits, runs, is dead or held, and what is to be delivered."""
    lanes = list_lane_statuses(tx)
    people = {state: count for state, count in tx.all(COUNT_DEAD_AND_HELD, {})}  # noqa: C416 - rows, not pairs
    outgoing = tx.one(COUNT_OUTGOING, {})
    return QueueStatus(
        pending=sum(lane.pending for lane in lanes),
        processing=sum(lane.processing for lane in lanes),
        dead=people.get(MessageState.DEAD.value, 0),
        held=people.get(MessageState.HELD.value, 0),
        outgoing=0 if outgoing is None else outgoing[0],
        lanes=lanes,
    )


def list_lane_statuses(tx: Transaction) -> tuple[LaneStatus, ...]:
    """Every lane in numbers, by agent."""
    return tuple(_lane_status(*row) for row in tx.all(SELECT_LANE_STATUSES, {}))


def _lane_status(
    agent: str,
    state: str,
    reason: str | None,
    pending: int,
    batch: str | None,
    worker: str | None,
    lease: int | None,
) -> LaneStatus:
    # The batch and the worker of the last claim stay in the row; a lease tells that it lives.
    running = 0 if lease is None or batch is None else batch.count(",") + 1
    return LaneStatus(agent, state, reason, pending, running, worker if lease else None, lease)
