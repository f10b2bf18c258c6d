"""The queue at a glance: the counts, and what each lane does for how long; from small indexes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import func, select

from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.queue.lane_list import LaneRecord, list_lanes
from bullpen.core.queue.running import list_running
from bullpen.core.queue.status import queue_status
from bullpen.core.queue.waiting import waiting_since
from bullpen.core.states import LaneState, ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.workers import count_live_workers

PROCESSOR = "processor"
"""As what processors are in the register of workers."""

R = RESPONSES.c

COUNT_UNDELIVERED: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(R.status, func.count())
        .where(
            R.status.in_(
                [const(each.value) for each in (ResponseState.DEAD, ResponseState.UNKNOWN)]
            )
        )
        .group_by(R.status)
    )
)


@dataclass(frozen=True, slots=True)
class LaneActivity:
    """A lane, what it is at, and since when."""

    agent: str
    state: str
    reason: str | None
    outside: bool
    """Whether workers outside of Bullpen answer it."""
    ordering: str
    pending: int
    processing: int
    waiting_since: int | None
    """Since when its next message is due; None if none is."""
    not_before: int | None
    """Until then the provider asked it to wait."""
    worker: str | None
    claimed_at: int | None
    lease_expires_at: int | None
    message_id: str | None = None
    """The message that it is at."""
    message: str | None = None

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to say of it."""
        return not (self.pending or self.processing) and self.state == LaneState.ACTIVE


@dataclass(frozen=True, slots=True)
class QueueOverview:
    """The whole queue."""

    pending: int
    processing: int
    held: int
    dead: int
    outgoing: int
    undelivered: int
    """Answers that are dead: they did not get there."""
    unknown: int
    """Answers of which nobody knows whether they got there."""
    oldest_waiting_since: int | None
    processors: int
    """How many were heard of lately."""
    hold: Hold | None
    """Why nothing goes out to people, if nothing does."""
    lanes: tuple[LaneActivity, ...]


def queue_overview(tx: Transaction) -> QueueOverview:
    """Look at everything, at one moment."""
    status = queue_status(tx)
    lanes = list_lane_activity(tx)
    lost = {state: count for state, count in tx.all(COUNT_UNDELIVERED, {})}  # noqa: C416 - rows
    waiting = [lane.waiting_since for lane in lanes if lane.waiting_since is not None]
    return QueueOverview(
        pending=status.pending,
        processing=status.processing,
        held=status.held,
        dead=status.dead,
        outgoing=status.outgoing,
        undelivered=lost.get(ResponseState.DEAD.value, 0),
        unknown=lost.get(ResponseState.UNKNOWN.value, 0),
        oldest_waiting_since=min(waiting, default=None),
        processors=count_live_workers(tx).get(PROCESSOR, 0),
        hold=find_hold(tx),
        lanes=lanes,
    )


def list_lane_activity(tx: Transaction) -> tuple[LaneActivity, ...]:
    """Every lane, by agent."""
    since = waiting_since(tx)
    lanes = {lane.agent: _lane_activity(lane, since.get(lane.agent)) for lane in list_lanes(tx)}
    for each in reversed(list_running(tx)):  # the primary of each comes last, and stays
        agent = each.message.agent
        primary, text = each.message.message_id, each.message.message
        lanes[agent] = replace(lanes[agent], message_id=primary, message=text)
    return tuple(lanes.values())


def _lane_activity(lane: LaneRecord, since: int | None) -> LaneActivity:
    runs = lane.processing > 0
    return LaneActivity(
        agent=lane.agent,
        state=lane.state,
        reason=lane.reason,
        outside=lane.outside,
        ordering=lane.ordering,
        pending=lane.pending,
        processing=lane.processing,
        waiting_since=since,
        not_before=lane.not_before,
        worker=lane.claimed_by if runs else None,
        claimed_at=lane.claimed_at if runs else None,
        lease_expires_at=lane.lease_expires_at,
    )
