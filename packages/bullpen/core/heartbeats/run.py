"""Enqueues a message for each heartbeat that is due, and records its outcome."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, bindparam, select, update

from bullpen.core.clock import get_zone, owner_zone_name, seconds_until, start_of_day
from bullpen.core.errors import IllegalMove, LaneError, UnknownAgent
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.schedule import (
    HeartbeatPaused,
    HeartbeatSent,
    HeartbeatSilent,
    HeartbeatSkipped,
)
from bullpen.core.heartbeats.history import (
    HeartbeatOutcome,
    is_budget_spent,
    record_heartbeat_run,
    set_run_outcome,
)
from bullpen.core.heartbeats.manage import get_heartbeat, remove_heartbeat, write_heartbeat
from bullpen.core.heartbeats.model import (
    MAX_ERRORS,
    SILENT_ANSWER,
    H,
    Heartbeat,
    HeartbeatState,
    heartbeat_from_row,
)
from bullpen.core.history import record_note
from bullpen.core.message import HEARTBEAT, Answer, Message, NewMessage
from bullpen.core.models import HEARTBEATS
from bullpen.core.models.base import const
from bullpen.core.outbox.addresses import DeliveryAddress, owner_address
from bullpen.core.outbox.hold import find_hold
from bullpen.core.outbox.write import OWNER_SENDER, add_response, send_to_owner
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import Lane, lock_lane
from bullpen.core.states import LaneState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count
from bullpen.core.workspace.contents import read_heartbeat_text

log = logging.getLogger(__name__)

MAX_NOTE_CHARS = 2000
"""The part of its own answer that an agent is reminded of."""

HEARTBEAT_SENDER = "Heartbeat"

# The silent answer on a line of its own, with any markup around it.
_SILENT_LINE = re.compile(rf"^[\s*_`\"'.!]*{SILENT_ANSWER}[\s*_`\"'.!]*$", re.MULTILINE)


def _on() -> ColumnElement[bool]:
    return H.state == const(HeartbeatState.ON.value)


SELECT_DUE: Statement[Heartbeat] = Statement(
    lambda: (
        select(*H).where(_on(), H.due_at <= bindparam("now")).order_by(H.due_at).limit(const(100))
    ),
    heartbeat_from_row,
)

SELECT_NEXT_DUE: Statement[tuple[int]] = Statement(
    lambda: select(H.due_at).where(_on(), H.due_at.is_not(None)).order_by(H.due_at).limit(const(1))
)

# If several schedulers see the same due time, only one advances it.
ADVANCE_HEARTBEAT: Statement[None] = Statement(
    lambda: (
        update(HEARTBEATS)
        .where(H.agent == bindparam("name"), _on(), H.due_at == bindparam("seen"))
        .values(due_at=bindparam("next"), last_at=bindparam("last"))
    )
)

# Reads the whole table, which has a row for each agent at most.
SKIP_MISSED: Statement[None] = Statement(
    lambda: (
        update(HEARTBEATS)
        .where(_on(), H.due_at <= bindparam("now"))
        .values(due_at=bindparam("now", type_=H.every.type) + H.every)
    )
)


def send_due_heartbeats(store: Store) -> float:
    """Send every heartbeat that is due; returns the seconds until the next one is."""
    with store.read() as tx:
        if find_hold(tx) is not None:
            return seconds_until(None, tx.now)
        now = tx.now
        due = tx.all(SELECT_DUE, {"now": now})
        following = None if due else tx.one(SELECT_NEXT_DUE, {})
    if not due:
        return seconds_until(None if following is None else following[0], now)
    zone = get_zone(owner_zone_name(store.settings))
    for heartbeat in due:
        text = read_heartbeat_text(store.settings, heartbeat.agent)
        with store.write() as tx:
            sent = send_heartbeat(tx, heartbeat, text.strip(), zone)
        if sent:
            log.info("sent a heartbeat to @%s", heartbeat.agent)
    return 0.0


def send_heartbeat(tx: Transaction, heartbeat: Heartbeat, text: str, zone: ZoneInfo) -> bool:
    """Wake the agent, unless another scheduler did; returns whether it was woken."""
    agent, due = heartbeat.agent, heartbeat.due_at
    assert due is not None
    try:
        lane = lock_lane(tx, agent)
    except UnknownAgent:
        remove_heartbeat(tx, agent)
        return False
    if heartbeat.hours is not None and not heartbeat.hours.contains(tx.now, zone):
        _advance(tx, heartbeat, due, heartbeat.hours.next(tx.now, zone), heartbeat.last_at)
        return False
    following = max(tx.now, due) + heartbeat.every
    reason = _skip_reason(lane, text)
    if is_budget_spent(tx, agent, heartbeat.budget, start_of_day(tx.now, zone)):
        reason = reason or f"the daily budget of {heartbeat.budget} is used up"
        following = max(following, start_of_day(tx.now, zone, days=1))
    if not _advance(tx, heartbeat, due, following, heartbeat.last_at):
        return False
    if reason is None:
        try:
            message = _enqueue(tx, heartbeat, text)
        except LaneError as error:
            reason = str(error)
        else:
            _advance(tx, heartbeat, following, following, tx.now)
            record_heartbeat_run(tx, agent, due, HeartbeatOutcome.SENT, message_id=message)
            append_event(tx, HeartbeatSent(MessageRef(agent, message, message)))
            return True
    record_heartbeat_run(tx, agent, due, HeartbeatOutcome.SKIPPED, reason=reason)
    append_event(tx, HeartbeatSkipped(agent=agent, reason=reason))
    return False


def send_heartbeat_now(tx: Transaction, agent: str, text: str) -> str:
    """Send a heartbeat by hand, in every state and at any hour; returns the message's id.

    It counts for the daily budget, but is sent even if the budget is used up. The next due time
    stays.
    """
    lane = lock_lane(tx, agent)
    if (reason := _skip_reason(lane, text)) is not None:
        raise IllegalMove(
            f"heartbeat of @{agent} not sent: {reason}",
            hint="The agent must be active and idle, and have a text in heartbeat.md. "
            f"Show them: bullpen queue agents, bullpen heartbeat show {agent}",
        )
    heartbeat = get_heartbeat(tx, agent)
    message = _enqueue(tx, heartbeat, text)
    write_heartbeat(tx, replace(heartbeat, last_at=tx.now))
    record_heartbeat_run(tx, agent, tx.now, HeartbeatOutcome.SENT, message_id=message)
    append_event(tx, HeartbeatSent(MessageRef(agent, message, message)))
    return message


def _advance(
    tx: Transaction, heartbeat: Heartbeat, seen: int, following: int, last: int | None
) -> bool:
    """Set the next due time if it is still due at `seen`; returns whether it was."""
    values = {"name": heartbeat.agent, "seen": seen, "next": following, "last": last}
    return tx.change(ADVANCE_HEARTBEAT, values) == 1


def skip_missed(tx: Transaction) -> int:
    """Restart the interval of every heartbeat that is due; returns how many there are."""
    return tx.change(SKIP_MISSED, {"now": tx.now})


def is_heartbeat(message: Message) -> bool:
    """Whether a message is a heartbeat."""
    return message.channel == HEARTBEAT


def strip_silent_answer(text: str) -> str:
    """The text without the silent answer; may be empty."""
    return _SILENT_LINE.sub("", text).strip()


def finish_heartbeat(tx: Transaction, message: Message, answer: Answer | None) -> None:
    """Send the answer to a heartbeat and record it; None is a silent one. Its lane is locked."""
    heartbeat = get_heartbeat(tx, message.agent)
    if answer is None:
        set_run_outcome(tx, message.message_id, HeartbeatOutcome.SILENT)
        append_event(tx, HeartbeatSilent(message))
        _update_counts(tx, replace(heartbeat, errors=0, silent=heartbeat.silent + 1))
        return
    set_run_outcome(tx, message.message_id, HeartbeatOutcome.SAID)
    place = heartbeat.place or owner_address(tx.settings)
    add_response(tx, _readdress(message, place, heartbeat.place is None), answer)
    _note_in_history(tx, message, str(heartbeat.place or "the owner"), answer.message)
    _update_counts(tx, replace(heartbeat, errors=0, silent=0))


def fail_heartbeat(tx: Transaction, message: Message, error: str) -> None:
    """Record a heartbeat that failed; its lane is locked."""
    set_run_outcome(tx, message.message_id, HeartbeatOutcome.FAILED, error[:500])
    heartbeat = get_heartbeat(tx, message.agent)
    _update_counts(tx, replace(heartbeat, errors=heartbeat.errors + 1), error)


def _skip_reason(lane: Lane, text: str) -> str | None:
    if lane.state != LaneState.ACTIVE:
        return f"the agent is {lane.state}"
    if lane.pending or lane.claim_token is not None:
        return "the agent is busy"
    if not text:
        return "heartbeat.md is empty"
    return None


def _enqueue(tx: Transaction, heartbeat: Heartbeat, text: str) -> str:
    # A heartbeat that waits longer than its interval is replaced by the next one.
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


def _readdress(message: Message, place: DeliveryAddress, to_owner: bool) -> Message:
    return replace(
        message,
        channel=place.channel,
        sender=OWNER_SENDER if to_owner else "",
        sender_id=place.sender_id,
        reply_to=None if place.reply_to is None else str(place.reply_to),
    )


def _note_in_history(tx: Transaction, message: Message, recipient: str, text: str) -> None:
    """Note its answer: the agent's other sessions do not contain its heartbeats."""
    note = f"in a heartbeat you wrote to {recipient}: {text[:MAX_NOTE_CHARS]}"
    record_note(tx, message.agent, message.message_id, note)


def _update_counts(tx: Transaction, heartbeat: Heartbeat, error: str = "") -> None:
    reason = None
    if heartbeat.errors >= MAX_ERRORS:
        reason = f"{heartbeat.errors} heartbeats in a row failed; the last: {error[:300]}"
    elif heartbeat.max_silent and heartbeat.silent >= heartbeat.max_silent:
        reason = f"{format_count(heartbeat.silent, 'silent heartbeat')} in a row"
    if heartbeat.state is not HeartbeatState.ON or reason is None:
        write_heartbeat(tx, heartbeat)
        return
    write_heartbeat(tx, replace(heartbeat, state=HeartbeatState.PAUSED, reason=reason, due_at=None))
    append_event(tx, HeartbeatPaused(agent=heartbeat.agent, reason=reason))
    send_to_owner(
        tx,
        f"The heartbeat of @{heartbeat.agent} is paused: {reason}.\n"
        f"Resume it: bullpen heartbeat on {heartbeat.agent}",
    )
