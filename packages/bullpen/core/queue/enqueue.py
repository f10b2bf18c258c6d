"""Enqueue messages: check them, recognise repeated platform events, and store them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, func, insert, select

from bullpen.core.clock import DAY
from bullpen.core.errors import BadDeadline, BadDelay, BadText, DeadlinePassed, KeyBacklog
from bullpen.core.ids import check_message_id
from bullpen.core.message import Accepted, NewMessage
from bullpen.core.models import MESSAGES, RECEIPTS
from bullpen.core.models.base import const, insert_if_absent
from bullpen.core.queue.insert import insert_checked, insert_locked
from bullpen.core.queue.lanes import ask_for_locks
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

_RECEIPT_COLUMNS = ("channel", "event_id", "message_id", "created_at")

# Fails if another transaction stored the same event meanwhile, and so stores no message twice.
INSERT_RECEIPT: Statement[None] = Statement(
    lambda: insert(RECEIPTS).values({each: bindparam(each) for each in _RECEIPT_COLUMNS})
)

# Two redeliveries may add the same id of their event at once.
ADD_RECEIPT: Statement[None] = Statement(lambda: insert_if_absent(RECEIPTS, _RECEIPT_COLUMNS))


M = MESSAGES.c
WAITING = tuple(const(each.value) for each in WAITING_STATES)

SELECT_WAITING_OF_KEY: Statement[tuple[int, int]] = Statement(
    lambda: select(func.count(), func.coalesce(func.sum(M.key_bytes), const(0))).where(
        M.key_id == bindparam("key"), M.status.in_(WAITING)
    )
)


@dataclass(frozen=True, slots=True)
class PlatformEvent:
    """The channel of a platform's event, and one of its ids. Platforms deliver events repeatedly.

    An event may have several ids, of which a redelivery has at least one.
    """

    channel: str
    id: str

    @classmethod
    def of(cls, new: NewMessage) -> tuple[PlatformEvent, ...]:
        """The event of a message under each of its ids."""
        return tuple(cls(new.channel, each) for each in new.event_ids)


@dataclass(frozen=True, slots=True)
class Submission:
    """Messages that are stored together; with a platform event, they are stored only once."""

    messages: Sequence[NewMessage]
    events: Sequence[PlatformEvent] = ()
    """The event under each of its ids."""
    receipt_id: str | None = None
    """The id that a redelivery returns; None means the id of the first message."""


def enqueue(tx: Transaction, new: NewMessage) -> Accepted:
    """Store one message for its agent."""
    return enqueue_many(tx, (new,))[0]


def enqueue_many(tx: Transaction, news: Sequence[NewMessage]) -> list[Accepted]:
    """Store these messages, all or none; returns their receipts in the same order."""
    if any(new.event_ids for new in news):
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
    locks = ask_for_locks(tx, [new.agent for at in firsts for new in submissions[at].messages])
    # Looked up after locking: a simultaneous redelivery waited for the locks and sees the receipt.
    events = [event for each in submissions for event in each.events]
    receipts = find_receipts(tx, events)
    lanes = locks()
    fresh = _positions_of_fresh(submissions, receipts)
    ids = message_ids.allocate([each for at in fresh for each in proposed[at]])
    insert_locked(tx, [new for at in fresh for new in submissions[at].messages], ids, lanes)
    next_ids = iter(ids)
    accepted = {at: [Accepted(next(next_ids)) for _ in submissions[at].messages] for at in fresh}
    for at, each in enumerate(submissions):
        if at in accepted:
            message_id = each.receipt_id or accepted[at][0].message_id
            _write_receipts(tx, INSERT_RECEIPT, each.events, message_id)
            receipts.update(dict.fromkeys(each.events, message_id))
        elif (first := _first_message(each.events, receipts)) is not None:
            _write_receipts(tx, ADD_RECEIPT, each.events, first)
            accepted[at] = [Accepted(first, fresh=False)]
    return [accepted[at] for at in range(len(submissions))]


def find_receipts(tx: Transaction, events: Sequence[PlatformEvent]) -> dict[PlatformEvent, str]:
    """The message ids of these events, as far as they were stored before."""
    values = [{"channel": each.channel, "event_id": each.id} for each in events]
    rows = tx.one_each(SELECT_RECEIPT, values) if values else []
    return {event: row[0] for event, row in zip(events, rows, strict=True) if row is not None}


def find_first(tx: Transaction, events: Sequence[PlatformEvent]) -> str | None:
    """The id of the message that an event created; None if the event is new.

    Ids of a known event that were not stored yet are added to its receipts.
    """
    receipts = find_receipts(tx, events)
    unknown = [each for each in events if each not in receipts]
    first = _first_message(events, receipts)
    if first is not None:
        _write_receipts(tx, ADD_RECEIPT, unknown, first)
    return first


def record_receipts(tx: Transaction, events: Sequence[PlatformEvent], message_id: str) -> None:
    """Record that an event was taken in, also if no message was created from it."""
    _write_receipts(tx, ADD_RECEIPT, events, message_id)


def check_message(tx: Transaction, new: NewMessage) -> None:
    """Raise an error if the message cannot be stored, before anything is written."""
    _check_texts(tx, new)
    _check_times(tx, new)
    if new.key_id is not None:
        _check_key(tx, new)


def _enqueue_events(tx: Transaction, news: Sequence[NewMessage]) -> list[Accepted]:
    """Store messages, some of which have a platform event."""
    for new in news:
        _check_texts(tx, new)
    submissions = [Submission((new,), PlatformEvent.of(new)) for new in news]
    receipts = find_receipts(tx, [event for each in submissions for event in each.events])
    known = [_first_message(each.events, receipts) for each in submissions]
    fresh = [each for each, id_ in zip(submissions, known, strict=True) if id_ is None]
    # The deadline of a redelivery may have passed since the first delivery.
    for at in _positions_of_fresh(fresh, ()):
        _check_times(tx, fresh[at].messages[0])
    stored = iter(store_submissions(tx, fresh))
    for each, id_ in zip(submissions, known, strict=True):
        if id_ is not None:
            _write_receipts(tx, ADD_RECEIPT, each.events, id_)
    return [next(stored)[0] if id_ is None else Accepted(id_, fresh=False) for id_ in known]


def _positions_of_fresh(
    submissions: Sequence[Submission], receipts: Collection[PlatformEvent]
) -> list[int]:
    """The positions of the submissions to store: the first one of each new event."""
    seen = set(receipts)
    positions = []
    for at, each in enumerate(submissions):
        if seen.isdisjoint(each.events):
            positions.append(at)
        seen.update(each.events)
    return positions


def _check_texts(tx: Transaction, new: NewMessage) -> None:
    limit = tx.settings.message_bytes
    check_text(new.message, limit)
    if not new.message and not new.files:
        raise BadText("the message is empty")
    if new.message_id is not None:
        check_message_id(new.message_id)
    rest = (
        *(new.agent, new.channel, new.sender, new.sender_id, new.message_id, *new.event_ids),
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


def _first_message(
    events: Sequence[PlatformEvent], receipts: dict[PlatformEvent, str]
) -> str | None:
    """The message of the first id that is known; then it is the message of the other ids too."""
    first = next((receipts[each] for each in events if each in receipts), None)
    if first is not None:
        for each in events:
            receipts.setdefault(each, first)
    return first


def _write_receipts(
    tx: Transaction, statement: Statement[None], events: Sequence[PlatformEvent], message_id: str
) -> None:
    for each in dict.fromkeys(events):
        values = {"channel": each.channel, "event_id": each.id, "message_id": message_id}
        tx.write(statement, {**values, "created_at": tx.now})
