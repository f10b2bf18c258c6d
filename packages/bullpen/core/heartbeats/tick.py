"""What a scheduler does again and again: it wakes the agents whose time has come."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, bindparam, select, update

from bullpen.core.clock import seconds_until
from bullpen.core.errors import LaneError, UnknownAgent
from bullpen.core.events.append import EventType, append_event
from bullpen.core.heartbeats.beats import HeartbeatOutcome, is_budget_spent, record_heartbeat_run
from bullpen.core.heartbeats.columns import H, HeartbeatTuple, columns, heartbeat_from_row
from bullpen.core.heartbeats.heartbeat import Heartbeat, HeartbeatState
from bullpen.core.heartbeats.heartbeats import remove_heartbeat
from bullpen.core.message import HEARTBEAT, NewMessage
from bullpen.core.models import HEARTBEATS
from bullpen.core.models.base import const
from bullpen.core.outbox.hold import find_hold
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lane import Lane, lock_lane
from bullpen.core.states import LaneState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.time_zone import get_zone, owner_zone_name, start_of_day
from bullpen.core.workspace.heartbeat_text import read_heartbeat_text

HEARTBEAT_SENDER = "Heartbeat"


def _on() -> ColumnElement[bool]:
    return H.state == const(HeartbeatState.ON.value)


SELECT_DUE: Statement[HeartbeatTuple] = Statement(
    lambda: (
        select(*columns())
        .where(_on(), H.due_at <= bindparam("now"))
        .order_by(H.due_at)
        .limit(const(100))
    )
)
SELECT_NEXT_DUE: Statement[tuple[int]] = Statement(
    lambda: select(H.due_at).where(_on(), H.due_at.is_not(None)).order_by(H.due_at).limit(const(1))
)
# Of many schedulers that come with the same beat, one moves it on.
ADVANCE_HEARTBEAT: Statement[None] = Statement(
    lambda: (
        update(HEARTBEATS)
        .where(H.agent == bindparam("name"), _on(), H.due_at == bindparam("seen"))
        .values(due_at=bindparam("next"), last_at=bindparam("last"))
    )
)
# Read in full: there are as many as agents.
SKIP_MISSED: Statement[None] = Statement(
    lambda: (
        update(HEARTBEATS)
        .where(_on(), H.due_at <= bindparam("now"))
        .values(due_at=bindparam("now", type_=H.every.type) + H.every)
    )
)


def skip_missed(tx: Transaction) -> int:
    """Begin the interval of every heart anew that should have beaten; gives how many they are."""
    return tx.change(SKIP_MISSED, {"now": tx.now})


def send_due_heartbeats(store: Store) -> float:
    """Let every heart beat that is due; gives how many seconds there is nothing to do."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return seconds_until(None, tx.now)
        now = tx.now
        due = [heartbeat_from_row(row) for row in tx.all(SELECT_DUE, {"now": now})]
        following = None if due else tx.one(SELECT_NEXT_DUE, {})
    if not due:
        return seconds_until(None if following is None else following[0], now)
    here = get_zone(owner_zone_name(store.settings))
    for heartbeat in due:
        text = read_heartbeat_text(store.settings, heartbeat.agent)
        with store.write() as tx:
            send_heartbeat(tx, heartbeat, text.strip(), here)
    return 0.0


def send_heartbeat(tx: Transaction, heartbeat: Heartbeat, text: str, here: ZoneInfo) -> bool:
    """Wake the agent, if it is to be woken now and nobody else did; whether it was."""
    agent, due = heartbeat.agent, heartbeat.due_at
    assert due is not None
    try:
        lane = lock_lane(tx, agent)
    except UnknownAgent:
        remove_heartbeat(tx, agent)
        return False
    following = max(tx.now, due) + heartbeat.every
    moved: dict[str, object] = {"name": agent, "seen": due, "last": heartbeat.last_at}
    if heartbeat.hours is not None and not heartbeat.hours.contains(tx.now, here):
        tx.change(ADVANCE_HEARTBEAT, {**moved, "next": heartbeat.hours.next(tx.now, here)})
        return False
    today = start_of_day(tx.now, here, 0)
    used_up = is_budget_spent(tx, agent, heartbeat.budget, today)
    why = _skip_reason(lane, text) or (
        f"the {heartbeat.budget} beats of today are spent" if used_up else None
    )
    if used_up:
        following = max(following, start_of_day(tx.now, here, 1))
    if tx.change(ADVANCE_HEARTBEAT, {**moved, "next": following, "last": heartbeat.last_at}) == 0:
        return False
    message = None
    if why is None:
        try:
            message = _enqueue(tx, heartbeat, text)
        except LaneError as error:
            why = str(error)
    if message is None:
        record_heartbeat_run(tx, agent, due, HeartbeatOutcome.SKIPPED, reason=why)
        append_event(tx, EventType.HEARTBEAT_SKIPPED, agent=agent, reason=why)
        return False
    tx.change(
        ADVANCE_HEARTBEAT, {"name": agent, "seen": following, "next": following, "last": tx.now}
    )
    record_heartbeat_run(tx, agent, due, HeartbeatOutcome.SENT, message_id=message)
    append_event(
        tx,
        EventType.HEARTBEAT_SENT,
        agent=agent,
        conversation_id=message,
        message_id=message,
    )
    return True


def _skip_reason(lane: Lane, text: str) -> str | None:
    if lane.state != LaneState.ACTIVE:
        return f"its lane is {lane.state}"
    if lane.pending or lane.claim_token is not None:
        return "it is busy"
    if not text:
        return "there is nothing in its heartbeat.md"
    return None


def _enqueue(tx: Transaction, heartbeat: Heartbeat, text: str) -> str:
    # Not answered until the next one is due, it is of no use any more.
    deadline = tx.now + heartbeat.every
    new = NewMessage(
        agent=heartbeat.agent,
        message=text,
        channel=HEARTBEAT,
        sender=HEARTBEAT_SENDER,
        deadline=deadline,
        origin=HEARTBEAT,
    )
    return enqueue(tx, new).message_id
