"""Insert checked messages into locked lanes: depth, overflow, order, history and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter

from sqlalchemy import bindparam, insert, update

from bullpen.core.errors import LaneClosed, LaneFull
from bullpen.core.events.append import append_events
from bullpen.core.events.base import Event, MessageRef
from bullpen.core.events.conversation import MessageEnqueued
from bullpen.core.events.message import MessageHeld
from bullpen.core.file_records import record_message_files
from bullpen.core.history import record_messages
from bullpen.core.message import NewMessage
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const, encode_list
from bullpen.core.queue.dead_letters import drop_oldest
from bullpen.core.queue.lanes import Lane, Overflow, lock_lane, lock_lanes, sort_key
from bullpen.core.queue.message_ids import MessageIds
from bullpen.core.states import LANE_STATES, LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

PENDING = MessageState.PENDING.value
HELD = MessageState.HELD.value

_UNSET_COLUMNS = frozenset({"id", "error_kind", "claimed_by", "claim_token"})
"""The columns that a new message has no value for."""

INSERT_MESSAGE: Statement[None] = Statement(
    lambda: insert(MESSAGES).values(
        {
            **{
                each.name: bindparam(each.name)
                for each in MESSAGES.c
                if each.name not in _UNSET_COLUMNS
            },
            "retry_count": const(0),
            "crash_count": const(0),
            "runs": const(0),
            "created_at": bindparam("now"),
            "updated_at": bindparam("now"),
        }
    )
)

UPDATE_LANE_COUNT: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(LANES.c.agent == bindparam("lane"))
        .values(
            pending=LANES.c.pending + bindparam("change"),
            head_key=bindparam("head"),
            newest_at=bindparam("arrival"),
        )
    )
)


def insert_checked(tx: Transaction, news: Sequence[NewMessage]) -> list[str]:
    """Insert checked messages into their lanes; returns their ids in the same order."""
    ids = MessageIds(tx)
    proposed = ids.propose(news)
    lanes = lock_lanes(tx, [new.agent for new in news])
    allocated = ids.allocate(proposed)
    insert_locked(tx, news, allocated, lanes)
    return allocated


def insert_locked(
    tx: Transaction, news: Sequence[NewMessage], ids: Sequence[str], lanes: dict[str, Lane]
) -> None:
    """Insert checked messages under these ids into their lanes, which are locked."""
    if not news:
        return
    # Held messages do not count, and are inserted even if the lane accepts none.
    counts: dict[str, int] = {}
    for new in news:
        if new.hold_reason is None:
            counts[new.agent] = counts.get(new.agent, 0) + 1
    for agent, count in counts.items():
        _check_room(agent, lanes[agent], count)
    for agent, count in counts.items():
        over = _overflow_count(lanes[agent], count)
        if over > 0:
            drop_oldest(tx, agent, over)
            # Read again: the head of the lane may have been dropped.
            lanes[agent] = lock_lane(tx, agent)
    _insert_messages(tx, news, ids, lanes)


def _check_room(agent: str, lane: Lane, count: int) -> None:
    if not LANE_STATES[LaneState(lane.state)].accepts:
        raise LaneClosed(
            f"@{agent} is {lane.state} and accepts no messages",
            hint=f"Run `bullpen agent resume {agent}` to accept messages again.",
        )
    room = lane.pending if lane.overflow == Overflow.DROP_OLDEST else 0
    if _overflow_count(lane, count) > room:
        raise LaneFull(
            f"@{agent} already has {format_count(lane.pending, 'pending message')},"
            f" the limit is {lane.max_depth}",
            hint=f"Try again later, or run `bullpen agent lane {agent} --max-depth N`.",
        )


def _overflow_count(lane: Lane, count: int) -> int:
    return 0 if lane.max_depth is None else lane.pending + count - lane.max_depth


def _insert_messages(
    tx: Transaction, news: Sequence[NewMessage], ids: Sequence[str], lanes: dict[str, Lane]
) -> None:
    """Write these messages under these ids, and count them in their locked lanes."""
    counts = {new.agent: 0 for new in news}
    heads = {agent: lanes[agent].head_key for agent in counts}
    arrivals = {agent: lanes[agent].arrival(tx.now) for agent in counts}
    rows: list[dict[str, object]] = []
    stored = list(zip(news, ids, strict=True))
    for new, message_id in stored:
        agent, lane = new.agent, lanes[new.agent]
        due = arrivals[agent] + new.delay
        key = sort_key(lane.ordering, due, new.priority.weight, new.deadline)
        head = heads[agent]
        if new.hold_reason is None:
            counts[agent] += 1
            if new.delay == 0 and lane.claimable and (head is None or key < head):
                heads[agent] = key
        rows.append(_message_values(tx, new, message_id, due, key))
    tx.write_each(INSERT_MESSAGE, rows)
    record_messages(tx, stored)
    record_message_files(tx, stored)
    for agent, count in counts.items():
        values = {"change": count, "head": heads[agent], "arrival": arrivals[agent]}
        tx.write(UPDATE_LANE_COUNT, {**values, "lane": agent})
    append_events(tx, [event for new, id_ in stored for event in _events(tx, new, id_)])
    tx.wake("messages")


def _message_values(
    tx: Transaction, new: NewMessage, message_id: str, due: int, key: int
) -> dict[str, object]:
    names, values_of = _copied_fields()
    return {
        **dict(zip(names, values_of(new), strict=True)),
        "message_id": message_id,
        "files": encode_list(new.files) if new.files else None,
        "conversation_id": new.conversation_id or message_id,
        "conversation_at": tx.now if new.conversation_at is None else new.conversation_at,
        "reply_to": None if new.reply_to is None else str(new.reply_to),
        "batch_key": new.batch_key,
        "priority": int(new.priority),
        "sort_key": key,
        "ready": new.delay == 0,
        "due_at": due,
        "available_at": tx.now + new.delay,
        "status": PENDING if new.hold_reason is None else HELD,
        "last_error": new.hold_reason,
        "key_bytes": None if new.key_id is None else new.bytes,
        "now": tx.now,
    }


@cache
def _copied_fields() -> tuple[tuple[str, ...], Callable[[NewMessage], tuple[object, ...]]]:
    """The fields of a new message that are columns of the same name, and what reads them."""
    names = tuple(each.name for each in fields(NewMessage) if each.name in MESSAGES.c)
    return names, attrgetter(*names)


def _events(tx: Transaction, new: NewMessage, message_id: str) -> tuple[Event, ...]:
    about = MessageRef(new.agent, new.conversation_id or message_id, message_id)
    optional = {}
    if new.sender_id is not None:
        optional["sender_id"] = new.sender_id
    if new.from_agent is not None:
        optional["from_agent"] = new.from_agent
    if new.parent_id is not None:
        optional["parent_id"] = new.parent_id
    if new.team_id is not None:
        optional["team_id"] = new.team_id
    enqueued = MessageEnqueued(
        about,
        channel=new.channel,
        sender=new.sender,
        hop=new.hop,
        available_at=tx.now + new.delay,
        **optional,
    )
    if new.hold_reason is None:
        return (enqueued,)
    return (enqueued, MessageHeld(about, reason=new.hold_reason))
