"""Writes new messages into lanes that are locked and open: their rows, heads and events."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import bindparam, insert, select, union_all, update

from bullpen.core.clock import DAY
from bullpen.core.errors import DuplicateMessage
from bullpen.core.events.append import EventType, append_event
from bullpen.core.message import ROOM, NewMessage
from bullpen.core.models import ARCHIVE, LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lane import Lane, Ordering
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c
Draft = dict[str, object]

_GIVEN = (
    *(M.message_id, M.channel, M.sender, M.sender_id, M.message, M.agent, M.from_agent, M.files),
    *(M.conversation_id, M.parent_id, M.hop, M.team_id, M.reply_to, M.batch_key, M.priority),
    *(M.sort_key, M.ready, M.available_at, M.deadline, M.payload, M.schema, M.status),
    M.last_error,
)
_NOW = bindparam("now", type_=M.created_at.type)

# An id stays taken after its message went to the archive.
INSERT: Statement[None] = Statement(
    insert(MESSAGES).from_select(
        [*_GIVEN, M.retry_count, M.crash_count, M.created_at, M.updated_at],
        select(
            *(bindparam(column.name, type_=column.type) for column in _GIVEN),
            *(const(0), const(0), _NOW, _NOW),
        )
        .where(
            ~select(ARCHIVE.c.id).where(ARCHIVE.c.message_id == bindparam("message_id")).exists()
        )
        .suffix_with("ON CONFLICT DO NOTHING"),
    )
)

GROW: Statement[None] = Statement(
    update(LANES)
    .where(LANES.c.agent == bindparam("lane"))
    .values(pending=LANES.c.pending + bindparam("change"), head_key=bindparam("head"))
)

STATE: Statement[tuple[str]] = Statement(
    union_all(
        select(M.status).where(M.message_id == bindparam("message_id")),
        select(ARCHIVE.c.status).where(ARCHIVE.c.message_id == bindparam("message_id")),
    )
)


def state_of(tx: Transaction, message_id: str) -> str | None:
    """The state of the message of this id, archived ones included; None if there is none."""
    row = tx.one(STATE, {"message_id": message_id})
    return None if row is None else row[0]


def insert_messages(
    tx: Transaction, news: Sequence[NewMessage], lanes: dict[str, Lane]
) -> list[str]:
    """Write the messages; gives their ids in the same order."""
    heads: dict[str, int | None] = {agent: lane.head_key for agent, lane in lanes.items()}
    counts = dict.fromkeys(lanes, 0)
    drafts: list[Draft] = []
    for new in news:
        agent, lane = new.agent, lanes[new.agent]
        available = tx.now + new.delay
        key = sort_key(lane.ordering, available, new.priority.weight, new.deadline)
        head = heads[agent]
        if new.hold is None:
            counts[agent] += 1
            if new.delay == 0 and lane.claimable and (head is None or key < head):
                heads[agent] = key
        drafts.append(_draft(tx, new, available, key))
    ids = _insert(tx, news, drafts)
    for agent, count in counts.items():
        tx.write(GROW, {"lane": agent, "change": count, "head": heads[agent]})
    for new, draft in zip(news, drafts, strict=True):
        _tell(tx, new, draft)
    tx.wake("messages")
    return ids


def sort_key(ordering: str, available_at: int, weight: int, deadline: int | None) -> int:
    """Where a message stands in its lane: the smallest is claimed first, whatever the time.

    A tier's weight moves it forward by so much waiting, so that ageing rewrites nothing.
    """
    match Ordering(ordering):
        case Ordering.FIFO:
            return available_at
        case Ordering.PRIORITY:
            return available_at - weight
        case Ordering.DEADLINE:
            return available_at + DAY if deadline is None else deadline


def _draft(tx: Transaction, new: NewMessage, available: int, key: int) -> Draft:
    message_id = new.message_id or tx.ids.new(_prefix(new))
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
        "available_at": available,
        "deadline": new.deadline,
        "payload": new.payload,
        "schema": new.schema,
        "status": (MessageState.PENDING if new.hold is None else MessageState.HELD).value,
        "last_error": new.hold,
        "now": tx.now,
    }


def _prefix(new: NewMessage) -> str:
    if new.channel == ROOM:
        return "chat"
    return "internal" if new.from_agent is not None else new.channel


def _insert(tx: Transaction, news: Sequence[NewMessage], drafts: list[Draft]) -> list[str]:
    for new, draft, written in zip(news, drafts, tx.change_each(INSERT, drafts), strict=True):
        count = written
        while count == 0:
            if new.message_id is not None:
                state = state_of(tx, new.message_id)
                raise DuplicateMessage(new.message_id, state or "on its way")
            # A made-up id met one that exists: that is chance, not a duplicate.
            draft["message_id"] = tx.ids.new(_prefix(new))
            draft["conversation_id"] = new.conversation_id or draft["message_id"]
            count = tx.change(INSERT, draft)
    return [str(draft["message_id"]) for draft in drafts]


def _tell(tx: Transaction, new: NewMessage, draft: Draft) -> None:
    told = {
        "agent": new.agent,
        "conversation_id": str(draft["conversation_id"]),
        "message_id": str(draft["message_id"]),
    }
    append_event(tx, EventType.MESSAGE_ENQUEUED, **told)
    if new.hold is not None:
        append_event(tx, EventType.MESSAGE_HELD, **told, reason=new.hold)
