"""Writes new messages into lanes that are locked and open: their rows, heads and events."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import bindparam, insert, update

from bullpen.core.clock import DAY
from bullpen.core.events.append import EventType, append_event
from bullpen.core.message import NewMessage
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lane import Lane, Ordering
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

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
    told = {
        "agent": new.agent,
        "conversation_id": new.conversation_id or message_id,
        "message_id": message_id,
    }
    append_event(tx, EventType.MESSAGE_ENQUEUED, **told)
    if new.hold is not None:
        append_event(tx, EventType.MESSAGE_HELD, **told, reason=new.hold)
