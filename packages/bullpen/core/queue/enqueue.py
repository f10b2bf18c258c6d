"""enqueue: a message comes in. In the caller's transaction, so that it is there or it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import bindparam, insert, select

from bullpen.core.clock import DAY
from bullpen.core.errors import BadDeadline, BadDelay, BadText, DeadlinePassed, LaneClosed, LaneFull
from bullpen.core.message import Accepted, NewMessage
from bullpen.core.models import RECEIPTS
from bullpen.core.queue.bury import drop_oldest
from bullpen.core.queue.insert import insert_messages
from bullpen.core.queue.lane import Lane, Overflow, lock_lane
from bullpen.core.queue.names import MessageIds
from bullpen.core.states import LaneState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

MAX_DELAY_MS = 100 * 365 * DAY

SELECT_RECEIPT: Statement[tuple[str]] = Statement(
    lambda: select(RECEIPTS.c.message_id).where(
        RECEIPTS.c.channel == bindparam("channel"), RECEIPTS.c.event_id == bindparam("event_id")
    )
)

INSERT_RECEIPT: Statement[None] = Statement(
    lambda: insert(RECEIPTS).values(
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
    fresh: list[NewMessage] = []
    events: dict[tuple[str, str], int] = {}
    places: list[tuple[int, str | None]] = []
    for new in news:
        event = (new.channel, new.receipt or "")
        _check_texts(tx, new)
        known = None if new.receipt is None else _find_received(tx, event)
        if known is None and event not in events:
            # An event that comes again was taken in, even if its time has passed since.
            _check_times(tx, new)
            if new.receipt is not None:
                events[event] = len(fresh)
            places.append((len(fresh), None))
            fresh.append(new)
        else:
            places.append((events.get(event, -1), known or ""))
    ids = insert_checked(tx, fresh)
    for (channel, event_id), at in events.items():
        values = {"channel": channel, "event_id": event_id}
        tx.write(INSERT_RECEIPT, {**values, "message_id": ids[at], "created_at": tx.now})
    return [
        Accepted(ids[at]) if known is None else Accepted(known or ids[at], fresh=False)
        for at, known in places
    ]


def check_message(tx: Transaction, new: NewMessage) -> None:
    """Refuse what cannot be stored, before anything is written."""
    _check_texts(tx, new)
    _check_times(tx, new)


def _check_texts(tx: Transaction, new: NewMessage) -> None:
    limit = tx.settings.message_bytes
    check_text(new.message, limit)
    if not new.message and not new.files:
        raise BadText("the message is empty")
    rest = (
        *(new.agent, new.channel, new.sender, new.sender_id, new.message_id, new.receipt),
        *(new.from_agent, new.conversation_id, new.parent_id, new.team_id, new.payload),
        *(new.schema, new.hold, *new.files),
    )
    check_text("".join([each for each in rest if each]), limit, "what goes with the message")
    if new.reply_to is not None:
        check_text(str(new.reply_to), limit, "the reply address")


def _check_times(tx: Transaction, new: NewMessage) -> None:
    if not 0 <= new.delay <= MAX_DELAY_MS:
        raise BadDelay(f"a delay of {new.delay} ms is below zero, or over a hundred years")
    if new.deadline is not None and new.deadline <= tx.now:
        raise DeadlinePassed(f"the deadline was {tx.now - new.deadline} ms ago")
    if new.deadline is not None and new.deadline > tx.now + MAX_DELAY_MS:
        raise BadDeadline(f"the deadline is {new.deadline - tx.now} ms away")


def insert_checked(tx: Transaction, news: Sequence[NewMessage]) -> list[str]:
    """Put checked messages into their lanes; gives their ids in the same order."""
    names = MessageIds(tx, news)
    # What is held takes no place, and a lane that takes nothing lets it be held.
    counts = Counter([new.agent for new in news if new.hold is None])
    lanes = {agent: lock_lane(tx, agent) for agent in sorted({new.agent for new in news})}
    ids = names.allocate()
    for agent, count in counts.items():
        _check_room(agent, lanes[agent], count)
    for agent, count in counts.items():
        over = _overflow_count(lanes[agent], count)
        if over > 0:
            drop_oldest(tx, agent, over)
            lanes[agent] = lock_lane(tx, agent)
    insert_messages(tx, news, ids, lanes)
    return ids


def _check_room(agent: str, lane: Lane, count: int) -> None:
    if lane.state in (LaneState.DRAINING, LaneState.ARCHIVED):
        raise LaneClosed(f"the lane of {agent} is {lane.state}")
    room = lane.pending if lane.overflow == Overflow.DROP_OLDEST else 0
    if _overflow_count(lane, count) > room:
        raise LaneFull(f"the lane of {agent} holds {lane.pending} of {lane.max_depth} messages")


def _overflow_count(lane: Lane, count: int) -> int:
    return 0 if lane.max_depth is None else lane.pending + count - lane.max_depth


def _find_received(tx: Transaction, event: tuple[str, str]) -> str | None:
    row = tx.one(SELECT_RECEIPT, {"channel": event[0], "event_id": event[1]})
    return None if row is None else row[0]
