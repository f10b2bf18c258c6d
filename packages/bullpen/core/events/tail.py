"""Follows the event log from any position, for any number of readers, and loses no event.

An id is allocated before its transaction commits: on PostgreSQL a lower id may become visible
after a higher one. A transaction that has written an event holds a lock on the table until it
ends. So a tail notes the highest id and the transactions that hold that lock; as soon as none of
them holds it, every event up to that id is visible or was rolled back. Transactions that write no
events delay no reader. SQLite has one writer at a time, and the highest id is safe at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.core.events.log import EventRecord, event_columns, event_from_row, last_event_id
from bullpen.core.models import EVENTS
from bullpen.core.store.base import Store
from bullpen.core.store.committed import active_writers, wait_for_writers
from bullpen.core.store.statement import Statement

E = EVENTS.c

WRITER_WAIT_SECONDS = 5.0

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
