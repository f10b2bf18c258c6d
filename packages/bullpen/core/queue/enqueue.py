"""Enqueue messages: check them, recognise repeated platform events, and store them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, func, insert, select

from bullpen.core.clock import DAY
from bullpen.core.errors import BadDeadline, BadDelay, BadText, DeadlinePassed, KeyBacklog
from bullpen.core.ids import check_message_id
from bullpen.core.message import Accepted, NewMessage
from bullpen.core.models import MESSAGES, RECEIPTS
from bullpen.core.models.base import const
from bullpen.core.queue.insert import insert_checked, insert_locked
from bullpen.core.queue.lanes import lock_lanes
from bullpen.core.queue.message_ids import MessageIds
from bullpen.core.states import WAITING_STATES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.strict_json import check_json_column
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


M = MESSAGES.c
WAITING = tuple(const(each.value) for each in WAITING_STATES)

SELECT_WAITING_OF_KEY: Statement[tuple[int, int]] = Statement(
    lambda: select(func.count(), func.coalesce(func.sum(M.key_bytes), const(0))).where(
        M.key_id == bindparam("key"), M.status.in_(WAITING)
    )
)


@dataclass(frozen=True, slots=True)
class PlatformEvent:
    """The channel and id of a platform's event, which the platform may deliver twice."""

    channel: str
    id: str

    @classmethod
    def of(cls, new: NewMessage) -> PlatformEvent | None:
        """The event of a message, if it has one."""
        return None if new.event_id is None else cls(new.channel, new.event_id)


@dataclass(frozen=True, slots=True)
class Submission:
    """Messages that are stored together; with a platform event, they are stored only once."""

    messages: Sequence[NewMessage]
    event: PlatformEvent | None = None
    receipt_id: str | None = None
    """The id that a redelivery returns; None means the id of the first message."""


def enqueue(tx: Transaction, new: NewMessage) -> Accepted:
    """Store one message for its agent."""
    return enqueue_many(tx, (new,))[0]


def enqueue_many(tx: Transaction, news: Sequence[NewMessage]) -> list[Accepted]:
    """Store these messages, all or none; returns their receipts in the same order."""
    if any(new.event_id is not None for new in news):
        return _enqueue_events(tx, news)
    for new in news:
        check_message(tx, new)
    return [Accepted(id_) for id_ in insert_checked(tx, news)]


def store_submissions(
    tx: Transaction, submissions: Sequence[Submission]
) -> list[Sequence[Accepted]]:
    """Store all of these checked messages, or none; each event only once."""
    message_ids = MessageIds(tx)
    # A message that repeats an event of this list is not checked, since its agent may not exist.
    firsts = _positions_of_fresh(submissions, ())
    proposed = {at: message_ids.propose(submissions[at].messages) for at in firsts}
    lanes = lock_lanes(tx, [new.agent for at in firsts for new in submissions[at].messages])
    # Looked up after locking: a simultaneous redelivery waited for the locks and sees the receipt.
    receipts = find_receipts(tx, [each.event for each in submissions if each.event is not None])
    fresh = _positions_of_fresh(submissions, receipts)
    ids = message_ids.allocate([each for at in fresh for each in proposed[at]])
    insert_locked(tx, [new for at in fresh for new in submissions[at].messages], ids, lanes)
    next_ids = iter(ids)
    accepted = {at: [Accepted(next(next_ids)) for _ in submissions[at].messages] for at in fresh}
    for at in fresh:
        event, receipt_id = submissions[at].event, submissions[at].receipt_id
        if event is not None:
            receipts[event] = receipt_id or accepted[at][0].message_id
            _write_receipt(tx, event, receipts[event])
    return [
        accepted[at] if at in accepted else (_redelivered(each, receipts),)
        for at, each in enumerate(submissions)
    ]


def find_receipts(tx: Transaction, events: Sequence[PlatformEvent]) -> dict[PlatformEvent, str]:
    """The message ids of these events, as far as they were stored before."""
    values = [{"channel": each.channel, "event_id": each.id} for each in events]
    rows = tx.one_each(SELECT_RECEIPT, values) if values else []
    return {event: row[0] for event, row in zip(events, rows, strict=True) if row is not None}


def check_message(tx: Transaction, new: NewMessage) -> None:
    """Raise an error if the message cannot be stored, before anything is written."""
    _check_texts(tx, new)
    _check_times(tx, new)
    if new.key_id is not None:
        _check_key(tx, new)


def _enqueue_events(tx: Transaction, news: Sequence[NewMessage]) -> list[Accepted]:
    """Store messages, some of which have a platform event."""
    events = [PlatformEvent.of(new) for new in news]
    for new in news:
        _check_texts(tx, new)
    receipts = find_receipts(tx, [each for each in events if each is not None])
    seen = set(receipts)
    for new, event in zip(news, events, strict=True):
        # The deadline of a redelivery may have passed since the first delivery.
        if event is None or event not in seen:
            _check_times(tx, new)
        if event is not None:
            seen.add(event)
    fresh = [
        Submission((new,), event)
        for new, event in zip(news, events, strict=True)
        if event is None or event not in receipts
    ]
    stored = iter(store_submissions(tx, fresh))
    return [
        next(stored)[0]
        if event is None or event not in receipts
        else Accepted(receipts[event], fresh=False)
        for event in events
    ]


def _positions_of_fresh(
    submissions: Sequence[Submission], receipts: Collection[PlatformEvent]
) -> list[int]:
    """The positions of the submissions to store: the first one of each new event."""
    seen = set(receipts)
    positions = []
    for at, each in enumerate(submissions):
        if each.event is None:
            positions.append(at)
        elif each.event not in seen:
            seen.add(each.event)
            positions.append(at)
    return positions


def _redelivered(submission: Submission, receipts: Mapping[PlatformEvent, str]) -> Accepted:
    assert submission.event is not None
    return Accepted(receipts[submission.event], fresh=False)


def _write_receipt(tx: Transaction, event: PlatformEvent, message_id: str) -> None:
    values = {"channel": event.channel, "event_id": event.id}
    tx.write(INSERT_RECEIPT, {**values, "message_id": message_id, "created_at": tx.now})


def _check_texts(tx: Transaction, new: NewMessage) -> None:
    limit = tx.settings.message_bytes
    check_text(new.message, limit)
    if not new.message and not new.files:
        raise BadText("the message is empty")
    if new.message_id is not None:
        check_message_id(new.message_id)
    rest = (
        *(new.agent, new.channel, new.sender, new.sender_id, new.message_id, new.event_id),
        *(new.from_agent, new.conversation_id, new.parent_id, new.team_id, new.payload),
        *(new.schema, new.hold_reason, *new.files),
    )
    check_text("".join([each for each in rest if each]), limit, "the fields beside the message")
    if new.payload is not None:
        check_json_column(new.payload, "the payload")
    if new.reply_to is not None:
        check_text(str(new.reply_to), limit, "the reply address")


def _check_key(tx: Transaction, new: NewMessage) -> None:
    """Raise `KeyBacklog` if the key has reached its limit of pending messages or bytes."""
    row = tx.one(SELECT_WAITING_OF_KEY, {"key": new.key_id})
    count, held = row or (0, 0)
    most, most_bytes = tx.settings.key_pending, tx.settings.key_pending_bytes
    if most and count >= most:
        raise KeyBacklog(f"this key already has {count} of at most {most} pending messages")
    if most_bytes and count and held + new.bytes > most_bytes:
        raise KeyBacklog(
            f"the pending messages of this key already have {held} of at most {most_bytes} bytes"
        )


def _check_times(tx: Transaction, new: NewMessage) -> None:
    if not 0 <= new.delay <= MAX_DELAY_MS:
        raise BadDelay(f"the delay of {new.delay} ms is negative, or over a hundred years")
    if new.deadline is not None and new.deadline <= tx.now:
        raise DeadlinePassed(f"the deadline passed {tx.now - new.deadline} ms ago")
    if new.deadline is not None and new.deadline > tx.now + MAX_DELAY_MS:
        raise BadDeadline(f"the deadline is too far in the future, {new.deadline - tx.now} ms")
