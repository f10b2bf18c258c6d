"""What an agent made of its heartbeat: it said something, it was silent, or its run failed."""

from __future__ import annotations

import re
from dataclasses import replace

from bullpen.core.events.append import EventType, append_event, tell
from bullpen.core.heartbeats.beats import BeatOutcome, settle_beat
from bullpen.core.heartbeats.heartbeat import MOST_ERRORS, SILENT_WORD, Heartbeat, HeartbeatState
from bullpen.core.heartbeats.heartbeats import see_heartbeat, write_heartbeat
from bullpen.core.history.say import SAY
from bullpen.core.message import HEARTBEAT, INTERNAL, Message
from bullpen.core.outbox.add import add_response
from bullpen.core.outbox.place import Place, owner_place
from bullpen.core.outbox.proactive import OWNER, write_to_owner
from bullpen.core.outcome import Answer
from bullpen.core.store.transaction import Transaction

NOTED = 2000
"""So much of what it said by itself is an agent reminded of."""

# The word by itself, however it is marked up.
_WORD = re.compile(rf"^[\s*_`\"'.!]*{SILENT_WORD}[\s*_`\"'.!]*$", re.MULTILINE)


def is_heartbeat(message: Message) -> bool:
    """Whether nobody asked but Bullpen itself."""
    return message.channel == HEARTBEAT


def without_word(text: str) -> str:
    """What there is to tell, which may be nothing."""
    return _WORD.sub("", text).strip()


def beat_answered(tx: Transaction, message: Message, answer: Answer | None) -> None:
    """Tell what it said to whom it may concern; None was nothing. Its lane is locked."""
    heartbeat = see_heartbeat(tx, message.agent)
    if answer is None:
        settle_beat(tx, message.message_id, BeatOutcome.SILENT)
        tell(tx, EventType.HEARTBEAT_SILENT, message)
        _count(tx, replace(heartbeat, errors=0, silent=heartbeat.silent + 1))
        return
    settle_beat(tx, message.message_id, BeatOutcome.SAID)
    place = heartbeat.place or owner_place(tx.settings)
    add_response(tx, _addressed(message, place, heartbeat.place is None), answer)
    _remind(tx, message, str(heartbeat.place or "the owner"), answer.message)
    _count(tx, replace(heartbeat, errors=0, silent=0))


def beat_failed(tx: Transaction, message: Message, error: str) -> None:
    """Count a beat that ended in an error; its lane is locked."""
    settle_beat(tx, message.message_id, BeatOutcome.FAILED, error[:500])
    heartbeat = see_heartbeat(tx, message.agent)
    _count(tx, replace(heartbeat, errors=heartbeat.errors + 1), error)


def _addressed(message: Message, place: Place, to_owner: bool) -> Message:
    return replace(
        message,
        channel=place.channel,
        sender=OWNER if to_owner else "",
        sender_id=place.sender_id,
        reply_to=None if place.reply_to is None else str(place.reply_to),
    )


def _remind(tx: Transaction, message: Message, whom: str, text: str) -> None:
    """The session in which people talk with it knows nothing of its heartbeats."""
    values = {"agent": message.agent, "message_id": message.message_id, "role": "note"}
    content = f"by your heartbeat you wrote to {whom}: {text[:NOTED]}"
    values.update(channel=INTERNAL, sender="bullpen", content=content)
    tx.write(SAY, {**values, "now": tx.now})


def _count(tx: Transaction, heartbeat: Heartbeat, error: str = "") -> None:
    reason = None
    if heartbeat.errors >= MOST_ERRORS:
        reason = f"{heartbeat.errors} beats in a row failed; the last: {error[:300]}"
    elif heartbeat.max_silent and heartbeat.silent >= heartbeat.max_silent:
        reason = f"it had nothing to say {heartbeat.silent} times in a row"
    if heartbeat.state is not HeartbeatState.ON or reason is None:
        write_heartbeat(tx, heartbeat)
        return
    write_heartbeat(tx, replace(heartbeat, state=HeartbeatState.PAUSED, reason=reason, due_at=None))
    append_event(tx, EventType.HEARTBEAT_PAUSED, agent=heartbeat.agent, reason=reason)
    write_to_owner(
        tx,
        f"The heartbeat of @{heartbeat.agent} is paused: {reason}.\n"
        f"To let it go on: bullpen heartbeat on {heartbeat.agent}",
    )
