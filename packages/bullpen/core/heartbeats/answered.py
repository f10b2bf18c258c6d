"""What an agent made of its heartbeat: it said something, it was silent, or its run failed."""

from __future__ import annotations

import re
from dataclasses import replace

from bullpen.core.events.append import EventType, append_event, append_message_event
from bullpen.core.heartbeats.beats import HeartbeatOutcome, set_run_outcome
from bullpen.core.heartbeats.heartbeat import MAX_ERRORS, SILENT_ANSWER, Heartbeat, HeartbeatState
from bullpen.core.heartbeats.heartbeats import get_heartbeat, write_heartbeat
from bullpen.core.history.say import INSERT_HISTORY
from bullpen.core.message import HEARTBEAT, INTERNAL, Message
from bullpen.core.outbox.add import add_response
from bullpen.core.outbox.place import DeliveryAddress, owner_address
from bullpen.core.outbox.proactive import OWNER, send_to_owner
from bullpen.core.outcome import Answer
from bullpen.core.store.transaction import Transaction

MAX_NOTE_CHARS = 2000
"""So much of what it said by itself is an agent reminded of."""

# The word by itself, however it is marked up.
_SILENT_LINE = re.compile(rf"^[\s*_`\"'.!]*{SILENT_ANSWER}[\s*_`\"'.!]*$", re.MULTILINE)


def is_heartbeat(message: Message) -> bool:
    """Whether nobody asked but Bullpen itself."""
    return message.channel == HEARTBEAT


def strip_silent_answer(text: str) -> str:
    """What there is to tell, which may be nothing."""
    return _SILENT_LINE.sub("", text).strip()


def finish_heartbeat(tx: Transaction, message: Message, answer: Answer | None) -> None:
    """Tell what it said to whom it may concern; None was nothing. Its lane is locked."""
    heartbeat = get_heartbeat(tx, message.agent)
    if answer is None:
        set_run_outcome(tx, message.message_id, HeartbeatOutcome.SILENT)
        append_message_event(tx, EventType.HEARTBEAT_SILENT, message)
        _update_counts(tx, replace(heartbeat, errors=0, silent=heartbeat.silent + 1))
        return
    set_run_outcome(tx, message.message_id, HeartbeatOutcome.SAID)
    place = heartbeat.place or owner_address(tx.settings)
    add_response(tx, _readdress(message, place, heartbeat.place is None), answer)
    _note_in_history(tx, message, str(heartbeat.place or "the owner"), answer.message)
    _update_counts(tx, replace(heartbeat, errors=0, silent=0))


def fail_heartbeat(tx: Transaction, message: Message, error: str) -> None:
    """Count a beat that ended in an error; its lane is locked."""
    set_run_outcome(tx, message.message_id, HeartbeatOutcome.FAILED, error[:500])
    heartbeat = get_heartbeat(tx, message.agent)
    _update_counts(tx, replace(heartbeat, errors=heartbeat.errors + 1), error)


def _readdress(message: Message, place: DeliveryAddress, to_owner: bool) -> Message:
    return replace(
        message,
        channel=place.channel,
        sender=OWNER if to_owner else "",
        sender_id=place.sender_id,
        reply_to=None if place.reply_to is None else str(place.reply_to),
    )


def _note_in_history(tx: Transaction, message: Message, whom: str, text: str) -> None:
    """The session in which people talk with it knows nothing of its heartbeats."""
    values = {"agent": message.agent, "message_id": message.message_id, "role": "note"}
    content = f"by your heartbeat you wrote to {whom}: {text[:MAX_NOTE_CHARS]}"
    values.update(channel=INTERNAL, sender="bullpen", content=content)
    tx.write(INSERT_HISTORY, {**values, "now": tx.now})


def _update_counts(tx: Transaction, heartbeat: Heartbeat, error: str = "") -> None:
    reason = None
    if heartbeat.errors >= MAX_ERRORS:
        reason = f"{heartbeat.errors} beats in a row failed; the last: {error[:300]}"
    elif heartbeat.max_silent and heartbeat.silent >= heartbeat.max_silent:
        reason = f"it had nothing to say {heartbeat.silent} times in a row"
    if heartbeat.state is not HeartbeatState.ON or reason is None:
        write_heartbeat(tx, heartbeat)
        return
    write_heartbeat(tx, replace(heartbeat, state=HeartbeatState.PAUSED, reason=reason, due_at=None))
    append_event(tx, EventType.HEARTBEAT_PAUSED, agent=heartbeat.agent, reason=reason)
    send_to_owner(
        tx,
        f"The heartbeat of @{heartbeat.agent} is paused: {reason}.\n"
        f"To let it go on: bullpen heartbeat on {heartbeat.agent}",
    )
