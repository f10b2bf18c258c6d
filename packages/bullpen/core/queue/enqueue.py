"""enqueue: a message comes in. In the caller's transaction, so that it is there or it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import bindparam, insert, select

from bullpen.core.errors import BadDelay, DeadlinePassed, DuplicateMessage, LaneClosed, LaneFull
from bullpen.core.message import Accepted, NewMessage
from bullpen.core.models import RECEIPTS
from bullpen.core.queue.bury import bury_oldest
from bullpen.core.queue.insert import insert_messages, state_of
from bullpen.core.queue.lane import Lane, Overflow, lock_lane
from bullpen.core.states import LaneState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

TAKEN_IN: Statement[tuple[str]] = Statement(
    select(RECEIPTS.c.message_id).where(
        RECEIPTS.c.channel == bindparam("channel"), RECEIPTS.c.event_id == bindparam("event_id")
    )
)

TAKE_IN: Statement[None] = Statement(
    insert(RECEIPTS).values(
        channel=bindparam("channel"),
        event_id=bindparam("event_id"),
        message_id=bindparam("message_id"),
        created_at=bindparam("created_at"),
    )
)


def enqueue(tx: Transaction, new: NewMessage) -> Accepted:
    """Store one message for its agent."""
    return enqueue_many(tx, (new,))[0]


def enqueue_many(tx: Transaction, news: Sequence[NewMessage]) -> list[Accepted]:
    """Store these messages, all or none; the receipts come in the same order."""
    known = [_taken_in(tx, new) for new in news]
    fresh = [new for new, id_ in zip(news, known, strict=True) if id_ is None]
    for new in fresh:
        check(tx, new)
    lanes = open_lanes(tx, Counter([new.agent for new in fresh]))
    ids = insert_messages(tx, fresh, lanes)
    for new, id_ in zip(fresh, ids, strict=True):
        if new.receipt is not None:
            values = {"channel": new.channel, "event_id": new.receipt}
            tx.write(TAKE_IN, {**values, "message_id": id_, "created_at": tx.now})
    stored = iter(ids)
    return [Accepted(next(stored)) if id_ is None else Accepted(id_, False) for id_ in known]


def check(tx: Transaction, new: NewMessage) -> None:
    """Refuse what cannot be stored, before anything is written."""
    limit = tx.settings.message_bytes
    check_text(new.message, limit)
    for what, text in (
        ("the sender", new.sender),
        ("the sender's id", new.sender_id),
        ("the message's id", new.message_id),
        ("the event's id", new.receipt),
        ("the payload", new.payload),
    ):
        if text:
            check_text(text, limit, what)
    if new.delay < 0:
        raise BadDelay(f"a delay of {new.delay} ms is below zero")
    if new.deadline is not None and new.deadline <= tx.now:
        raise DeadlinePassed(f"the deadline was {tx.now - new.deadline} ms ago")
    if new.message_id is not None:
        state = state_of(tx, new.message_id)
        if state is not None:
            raise DuplicateMessage(new.message_id, state)


def open_lanes(tx: Transaction, counts: Counter[str]) -> dict[str, Lane]:
    """Lock the lanes of these agents and make sure that each takes so many more."""
    lanes = {agent: lock_lane(tx, agent) for agent in sorted(counts)}
    for agent, lane in lanes.items():
        if lane.state in (LaneState.DRAINING, LaneState.ARCHIVED):
            raise LaneClosed(f"the lane of {agent} is {lane.state}")
        if _over(lane, counts[agent]) > (
            lane.pending if lane.overflow == Overflow.DROP_OLDEST else 0
        ):
            raise LaneFull(f"the lane of {agent} holds {lane.pending} of {lane.max_depth} messages")
    for agent, lane in lanes.items():
        over = _over(lane, counts[agent])
        if over > 0:
            bury_oldest(tx, agent, over)
            lanes[agent] = lock_lane(tx, agent)
    return lanes


def _over(lane: Lane, count: int) -> int:
    return 0 if lane.max_depth is None else lane.pending + count - lane.max_depth


def _taken_in(tx: Transaction, new: NewMessage) -> str | None:
    if new.receipt is None:
        return None
    row = tx.one(TAKEN_IN, {"channel": new.channel, "event_id": new.receipt})
    return None if row is None else row[0]
