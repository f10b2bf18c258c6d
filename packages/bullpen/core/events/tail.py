"""Follows the events without losing one, from any position, for any number of readers.

An id is given before its transaction commits, so that on PostgreSQL a lower id may appear after a
higher one. A transaction that has written an event holds a lock on the table until it ends. So:
note the highest id and who holds that lock; when none of those holds it any more, everything up
to that id is there or never will be. Transactions that touch no events delay nobody. On SQLite
one writes at a time, and the highest id is safe at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from sqlalchemy import (
    BigInteger,
    Column,
    TableClause,
    Text,
    bindparam,
    column,
    func,
    select,
    table,
    text,
)

from bullpen.core.clock import poll_until
from bullpen.core.events.base import Event
from bullpen.core.events.vocabulary import read_event
from bullpen.core.models import EVENTS
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

E = EVENTS.c

WRITER_WAIT_SECONDS = 5.0
WRITER_POLL_SECONDS = 0.005

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


def columns() -> tuple[Column[object], ...]:
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
        select(*columns())
        .where(E.id > bindparam("after"), E.id <= bindparam("upto"))
        .order_by(E.id)
        .limit(bindparam("limit"))
    ),
    event_from_row,
)


def _locks() -> TableClause:
    return table("pg_locks", column("virtualtransaction", Text), column("relation", BigInteger))


ACTIVE_WRITERS: Statement[tuple[str]] = Statement(
    lambda: select(_locks().c.virtualtransaction).where(
        # Other databases of the server may have a table of the same number.
        text("relation = 'events'::regclass AND mode = 'RowExclusiveLock' AND granted"),
        text("database = (SELECT oid FROM pg_database WHERE datname = current_database())"),
    )
)


@dataclass(slots=True)
class EventTail:
    """One reader's place in the events."""

    store: Store
    position: int
    """The id of the last event that was read."""
    _committed_up_to: int = 0
    _barrier: int = 0
    _writers: frozenset[str] = frozenset()

    @classmethod
    def from_now(cls, store: Store) -> EventTail:
        """A reader that starts with what happens next.

        Whoever is writing just now may have the lower id: he is waited for, up to a limit.
        """
        with store.read() as tx:
            last = _max_event_id(tx)
        begun = _active_writers(store)
        poll_until(
            lambda: begun.isdisjoint(_active_writers(store)),
            WRITER_WAIT_SECONDS,
            WRITER_POLL_SECONDS,
        )
        return cls(store, last)

    @property
    def has_uncommitted(self) -> bool:
        """Whether there is more that may not be shown yet, because somebody is writing."""
        return self._barrier > self.position

    def read(self, limit: int = 500) -> list[EventRecord]:
        """The next events, in order; empty when there is nothing that may be shown yet."""
        if self._committed_up_to <= self.position:
            self._advance()
        if self._committed_up_to <= self.position:
            return []
        with self.store.read() as tx:
            events = tx.all(
                NEXT_EVENTS, {"after": self.position, "upto": self._committed_up_to, "limit": limit}
            )
        # Without a full page everything up to the safe id was seen, gaps included.
        self.position = events[-1].id if len(events) == limit else self._committed_up_to
        return events

    def _advance(self) -> None:
        with self.store.read() as tx:
            last = _max_event_id(tx)
        writers = _active_writers(self.store)
        if not writers & self._writers:
            self._committed_up_to = max(self._committed_up_to, self._barrier)
            self._barrier, self._writers = last, writers
        if not writers:
            self._committed_up_to = last


def id_before_oldest(store: Store) -> int:
    """The id before the oldest event that is kept: nobody can come back to an earlier place."""
    with store.read() as tx:
        row = tx.one(MIN_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0] - 1


def _active_writers(store: Store) -> frozenset[str]:
    """The transactions that may have written events which cannot be seen yet."""
    if store.dialect == "sqlite":
        return frozenset()
    with store.read() as tx:
        return frozenset(each for (each,) in tx.all(ACTIVE_WRITERS, {}))


def _max_event_id(tx: Transaction) -> int:
    row = tx.one(MAX_EVENT_ID, {})
    return 0 if row is None or row[0] is None else row[0]
