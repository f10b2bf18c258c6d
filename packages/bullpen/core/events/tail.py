"""Follows the event log from any position, for any number of readers, and loses no event.

An id is allocated before its transaction commits: on PostgreSQL a lower id may become visible
after a higher one. A transaction that has written an event holds a lock on the table until it
ends. So a tail notes the highest id and the transactions that hold that lock; as soon as none of
them holds it, every event up to that id is visible or was rolled back. Transactions that write no
events delay no reader. SQLite has one writer at a time, and the highest id is safe at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sqlalchemy import (
    Column,
    bindparam,
    func,
    select,
)

from bullpen.core.events.base import Event
from bullpen.core.events.vocabulary import read_event
from bullpen.core.models import EVENTS
from bullpen.core.store.base import Store
from bullpen.core.store.committed import active_writers, wait_for_writers
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

E = EVENTS.c

WRITER_WAIT_SECONDS = 5.0

MAX_EVENT_ID: Statement[tuple[int | None]] = Statement(lambda: select(func.max(E.id)))

MIN_EVENT_ID: Statement[tuple[int | None]] = Statement(lambda: select(func.min(E.id)))


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A row of the event log."""

    id: int
    type: str
    agent: str | None
    conversation_id: str | None
    message_id: str | None
    data: dict[str, object] = field(hash=False)
    created_at: int

    @property
    def event(self) -> Event:
        """What it records."""
        return read_event(self.type, self, self.data)


def event_columns() -> tuple[Column[object], ...]:
    """The columns of an event."""
    return (E.id, E.type, E.agent, E.conversation_id, E.message_id, E.data, E.created_at)


def event_from_row(
    id_: int,
    type_: str,
    agent: str | None,
    conversation_id: str | None,
    message_id: str | None,
    data: str | None,
    created_at: int,
) -> EventRecord:
    """The record in these columns, its data parsed."""
    parsed = json.loads(data) if data else {}
    return EventRecord(id_, type_, agent, conversation_id, message_id, parsed, created_at)


NEXT_EVENTS: Statement[EventRecord] = Statement(
    lambda: (
        select(*event_columns())
        .where(E.id > bindparam("after"), E.id <= bindparam("upto"))
        .order_by(E.id)
        .limit(bindparam("limit"))
    ),
    event_from_row,
)


@dataclass(slots=True)
class EventTail:
    """One reader's position in the event log."""

    store: Store
    position: int
    """The id of the last event that was read."""
    _committed_up_to: int = 0
    _barrier: int = 0
    _writers: frozenset[str] = frozenset()

    @classmethod
    def from_now(cls, store: Store) -> EventTail:
        """A reader that starts with the next event.

        It waits, up to a limit, for the transactions that are writing now: they may have lower ids.
        """
        with store.read() as tx:
            last = last_event_id(tx)
        wait_for_writers(store, EVENTS, WRITER_WAIT_SECONDS)
        return cls(store, last)

    @property
    def has_uncommitted(self) -> bool:
        """Whether there are events that cannot be read yet, because transactions are writing."""
        return self._barrier > self.position

    def read(self, limit: int = 500) -> list[EventRecord]:
        """The next events, in order; empty when no more can be read yet."""
        if self._committed_up_to <= self.position:
            self._advance()
        if self._committed_up_to <= self.position:
            return []
        with self.store.read() as tx:
            events = tx.all(
                NEXT_EVENTS, {"after": self.position, "upto": self._committed_up_to, "limit": limit}
            )
        # A page that is not full reaches the safe id, gaps included.
        self.position = events[-1].id if len(events) == limit else self._committed_up_to
        return events

    def _advance(self) -> None:
        with self.store.read() as tx:
            last = last_event_id(tx)
        writers = active_writers(self.store, EVENTS)
        if not writers & self._writers:
            self._committed_up_to = max(self._committed_up_to, self._barrier)
            self._barrier, self._writers = last, writers
        if not writers:
            self._committed_up_to = last


def last_event_id(tx: Transaction) -> int:
    """The highest id of the log; what this transaction causes comes after it."""
    row = tx.one(MAX_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0]


def id_before_oldest(store: Store) -> int:
    """The lowest position from which a reader can continue: older events are deleted."""
    with store.read() as tx:
        row = tx.one(MIN_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0] - 1
