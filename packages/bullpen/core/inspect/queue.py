"""The status of the queue: counts, waiting times, claims and lanes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlalchemy import Subquery, func, select

from bullpen.core.background import count_live_workers
from bullpen.core.inspect.lanes import LaneRecord, list_lanes
from bullpen.core.inspect.messages import MessageRecord, list_messages_by_number
from bullpen.core.models import LANES, MESSAGES, RESPONSES
from bullpen.core.models.base import const, decode_numbers
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.states import (
    ARCHIVED_STATES,
    NEEDS_PERSON_STATES,
    UNDELIVERED_STATES,
    LaneState,
    MessageState,
    ResponseState,
)
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c
M = MESSAGES.c
R = RESPONSES.c

PROCESSOR = "processor"
"""The kind of a processor in the table of workers."""

MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class RunningMessage:
    """A message in a run."""

    message: MessageRecord
    worker: str
    claimed_at: int
    lease_expires_at: int


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The counts of the whole queue."""

    pending: int
    processing: int
    dead: int
    held: int
    outgoing: int
    lanes: tuple[LaneRecord, ...]


@dataclass(frozen=True, slots=True)
class LaneActivity:
    """A lane and its run."""

    agent: str
    state: str
    reason: str | None
    outside: bool
    """Whether external workers serve it."""
    ordering: str
    pending: int
    processing: int
    waiting_since: int | None
    """The time since which its next message is due; None if no message is due."""
    not_before: int | None
    """The end of the rate limit."""
    worker: str | None
    claimed_at: int | None
    lease_expires_at: int | None
    message_id: str | None = None
    """The primary message of its run."""
    message: str | None = None

    @property
    def quiet(self) -> bool:
        """Whether it is active and has no messages."""
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
    """Dead responses, which were not delivered."""
    unknown: int
    """Responses that may have been delivered."""
    oldest_waiting_since: int | None
    processors: int
    """The number of live processes."""
    hold: Hold | None
    """The hold on deliveries, if there is one."""
    lanes: tuple[LaneActivity, ...]


COUNT_DEAD_AND_HELD: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(M.status, func.count())
        .where(M.status.in_([const(each.value) for each in NEEDS_PERSON_STATES]))
        .group_by(M.status)
    )
)

COUNT_OUTGOING: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).where(R.status == const(ResponseState.PENDING.value))
)

COUNT_UNDELIVERED: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(R.status, func.count())
        .where(
            R.status.in_([const(each.value) for each in UNDELIVERED_STATES]),
            # Not those whose outcome the channel client still looks up.
            R.tell_at.is_(None),
        )
        .group_by(R.status)
    )
)


def queue_status(tx: Transaction) -> QueueStatus:
    """Count the messages by state, and the pending responses."""
    lanes = tuple(list_lanes(tx))
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


def queue_overview(tx: Transaction) -> QueueOverview:
    """The status of the whole queue at one moment."""
    status = queue_status(tx)
    lanes = _with_activity(tx, status.lanes)
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
    """Every lane and its run, by agent."""
    return _with_activity(tx, list_lanes(tx))


def _with_activity(tx: Transaction, records: Iterable[LaneRecord]) -> tuple[LaneActivity, ...]:
    since = waiting_since(tx)
    lanes = {each.agent: _lane_activity(each, since.get(each.agent)) for each in records}
    for each in reversed(list_running(tx)):  # the primary message comes last, and overwrites
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


SELECT_CLAIMS: Statement[tuple[str, int, str, int]] = Statement(
    lambda: (
        select(L.batch, L.claimed_at, L.claimed_by, L.lease_expires_at)
        .where(L.lease_expires_at.is_not(None))
        .order_by(L.claimed_at, L.agent)
    )
)


def list_running(tx: Transaction) -> list[RunningMessage]:
    """The messages of all runs: the longest run first, and in it the primary message."""
    return [
        RunningMessage(message, worker, claimed_at, lease)
        for batch, claimed_at, worker, lease in tx.all(SELECT_CLAIMS, {})
        for message in list_messages_by_number(tx, decode_numbers(batch))
    ]


SELECT_WAITING_SINCE: Statement[tuple[str, int | None]] = Statement(
    lambda: (
        select(
            L.agent,
            select(M.due_at)
            .where(M.agent == L.agent, M.status == const(MessageState.PENDING.value), M.ready)
            .order_by(M.sort_key, M.id)
            .limit(const(1))
            .scalar_subquery(),
        )
        .where(L.pending > const(0))
        .order_by(L.agent)
    )
)

COUNT_OUTGOING_BY_CHANNEL: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(R.channel, func.count())
        .where(R.status == const(ResponseState.PENDING.value))
        .group_by(R.channel)
        .order_by(R.channel)
    )
)


def waiting_since(tx: Transaction) -> dict[str, int]:
    """The time since which each agent's next message is due; only agents with a due message."""
    return {agent: due for agent, due in tx.all(SELECT_WAITING_SINCE, {}) if due is not None}


def count_outgoing_by_channel(tx: Transaction) -> dict[str, int]:
    """The number of pending responses of each channel."""
    return {channel: count for channel, count in tx.all(COUNT_OUTGOING_BY_CHANNEL, {})}  # noqa: C416 - rows


def _completed() -> Subquery:
    return (
        select(const(1).label("one"))
        .where(
            M.status == const(MessageState.COMPLETED.value),
            # The state is named twice, so that the partial index is used.
            M.status.in_([const(state.value) for state in ARCHIVED_STATES]),
        )
        .limit(const(MAX_COUNTED))
        .subquery()
    )


COUNT_COMPLETED: Statement[tuple[int]] = Statement(
    lambda: select(func.count()).select_from(_completed())
)


def count_completed(tx: Transaction) -> int:
    """The number of completed live messages, up to `MAX_COUNTED`, without the archive."""
    row = tx.one(COUNT_COMPLETED, {})
    return 0 if row is None else row[0]
