"""Enqueue messages: ids, duplicates, lane limits and overflow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, insert, select, union_all, update

from bullpen.core.clock import DAY
from bullpen.core.errors import (
    BadDeadline,
    BadDelay,
    BadText,
    DeadlinePassed,
    DuplicateMessage,
    LaneClosed,
    LaneFull,
)
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import MessageEnqueued
from bullpen.core.events.message import MessageHeld
from bullpen.core.message import ROOM, Accepted, NewMessage
from bullpen.core.models import LANES, MESSAGES, MESSAGES_ARCHIVE, RECEIPTS
from bullpen.core.models.base import const
from bullpen.core.queue.dead_letters import drop_oldest
from bullpen.core.queue.lanes import Lane, Ordering, Overflow, lock_lane
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c
MessageValues = dict[str, object]

_INSERTED_COLUMNS = (
    *("message_id", "channel", "sender", "sender_id", "message", "agent", "from_agent", "files"),
    *("conversation_id", "parent_id", "hop", "team_id", "reply_to", "batch_key", "priority"),
    *("sort_key", "ready", "due_at", "available_at", "deadline", "payload", "schema", "status"),
    "last_error",
)
INSERT_MESSAGE: Statement[None] = Statement(
    lambda: insert(MESSAGES).values(
        {
            **{name: bindparam(name) for name in _INSERTED_COLUMNS},
            "retry_count": const(0),
            "crash_count": const(0),
            "created_at": bindparam("now"),
            "updated_at": bindparam("now"),
        }
    )
)

UPDATE_LANE_COUNT: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(LANES.c.agent == bindparam("lane"))
        .values(pending=LANES.c.pending + bindparam("change"), head_key=bindparam("head"))
    )
)


def insert_messages(
    tx: Transaction, news: Sequence[NewMessage], ids: Sequence[str], lanes: dict[str, Lane]
) -> None:
    """Write these messages under these ids."""
    heads: dict[str, int | None] = {agent: lane.head_key for agent, lane in lanes.items()}
    counts = dict.fromkeys(lanes, 0)
    drafts: list[MessageValues] = []
    for new, message_id in zip(news, ids, strict=True):
        agent, lane = new.agent, lanes[new.agent]
        available = tx.now + new.delay
        key = sort_key(lane.ordering, available, new.priority.weight, new.deadline)
        head = heads[agent]
        if new.hold is None:
            counts[agent] += 1
            if new.delay == 0 and lane.claimable and (head is None or key < head):
                heads[agent] = key
        drafts.append(_message_values(tx, new, message_id, available, key))
    tx.write_each(INSERT_MESSAGE, drafts)
    for agent, count in counts.items():
        tx.write(UPDATE_LANE_COUNT, {"lane": agent, "change": count, "head": heads[agent]})
    for new, message_id in zip(news, ids, strict=True):
        _append_enqueued(tx, new, message_id)
    tx.wake("messages")


def sort_key(ordering: str, due_at: int, weight: int, deadline: int | None) -> int:
    """Where a message stands in its lane: the smallest is claimed first, whatever the time.

    A tier's weight moves it forward by so much waiting, so that ageing rewrites nothing.
    """
    match Ordering(ordering):
        case Ordering.FIFO:
            return due_at
        case Ordering.PRIORITY:
            return due_at - weight
        case Ordering.DEADLINE:
            return due_at + DAY if deadline is None else deadline


def _message_values(
    tx: Transaction, new: NewMessage, message_id: str, available: int, key: int
) -> MessageValues:
    return {
        "message_id": message_id,
        "channel": new.channel,
        "sender": new.sender,
        "sender_id": new.sender_id,
        "message": new.message,
        "agent": new.agent,
        "from_agent": new.from_agent,
        "files": json.dumps(new.files) if new.files else None,
        "conversation_id": new.conversation_id or message_id,
        "parent_id": new.parent_id,
        "hop": new.hop,
        "team_id": new.team_id,
        "reply_to": None if new.reply_to is None else str(new.reply_to),
        "batch_key": new.batch_key,
        "priority": int(new.priority),
        "sort_key": key,
        "ready": new.delay == 0,
        "due_at": available,
        "available_at": available,
        "deadline": new.deadline,
        "payload": new.payload,
        "schema": new.schema,
        "status": (MessageState.PENDING if new.hold is None else MessageState.HELD).value,
        "last_error": new.hold,
        "now": tx.now,
    }


def _append_enqueued(tx: Transaction, new: NewMessage, message_id: str) -> None:
    about = MessageRef(new.agent, new.conversation_id or message_id, message_id)
    append_event(tx, MessageEnqueued(about))
    if new.hold is not None:
        append_event(tx, MessageHeld(about, reason=new.hold))


# An id stays taken after its message went to the archive.
SELECT_STATE: Statement[tuple[str]] = Statement(
    lambda: union_all(
        *(
            select(table.c.status).where(table.c.message_id == bindparam("message_id"))
            for table in (MESSAGES, MESSAGES_ARCHIVE)
        )
    )
)


def find_message_state(tx: Transaction, message_id: str) -> str | None:
    """The state of the message of this id, archived ones included; None if there is none."""
    row = tx.one(SELECT_STATE, {"message_id": message_id})
    return None if row is None else row[0]


class MessageIds:
    """The ids of messages that are about to be written; asked for early, settled when needed."""

    def __init__(self, tx: Transaction, news: Sequence[NewMessage]) -> None:
        self._tx = tx
        self._news = news
        self._ids = [new.message_id or tx.ids.new(_id_prefix(new)) for new in news]
        self._states = [tx.one_deferred(SELECT_STATE, {"message_id": id_}) for id_ in self._ids]

    def allocate(self) -> list[str]:
        """The ids; a client's that exists already is a duplicate, one of ours is made anew."""
        settled: dict[str, None] = {}
        for new, id_, state in zip(self._news, self._ids, self._states, strict=True):
            row = state()
            if row is None and id_ not in settled:
                settled[id_] = None
            elif new.message_id is not None:
                raise DuplicateMessage(id_, MessageState.PENDING.value if row is None else row[0])
            else:
                settled[self._another(new, settled)] = None
        return list(settled)

    def _another(self, new: NewMessage, settled: Collection[str]) -> str:
        """A made-up id met one that exists: that is chance, not a duplicate."""
        while True:
            id_ = self._tx.ids.new(_id_prefix(new))
            if id_ not in settled and find_message_state(self._tx, id_) is None:
                return id_


def _id_prefix(new: NewMessage) -> str:
    if new.channel == ROOM:
        return "chat"
    if new.origin is not None:
        return new.origin
    return "internal" if new.from_agent is not None else new.channel


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
