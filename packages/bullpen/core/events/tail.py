"""Follow the event log from any position, with any number of readers, without losing an event.

An id is allocated before its transaction commits, so on PostgreSQL a lower id may become visible
after a higher one. A transaction that has written an event holds a lock on the table until it
ends. A tail therefore remembers the highest id and the transactions that hold the lock. As soon as
all of them have ended, every event up to that id is either visible or rolled back. Transactions
that write no events delay no reader. SQLite has one writer at a time, so there the highest id is
always safe.
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
    """The id of the last event read."""
    _committed_up_to: int = 0
    _barrier: int = 0
    _writers: frozenset[str] = frozenset()

    @classmethod
    def from_now(cls, store: Store) -> EventTail:
        """A reader that starts with the next event.

        It waits for the transactions that are writing now, since they may have lower ids; at most
        `WRITER_WAIT_SECONDS`.
        """
        with store.read() as tx:
            last = last_event_id(tx)
        wait_for_writers(store, EVENTS, WRITER_WAIT_SECONDS)
        return cls(store, last)

    @property
    def has_uncommitted(self) -> bool:
        """Whether open transactions keep events from being read."""
        return self._barrier > self.position

    def read(self, limit: int = 500) -> list[EventRecord]:
        """The next events in order; empty if none can be read yet."""
        if self._committed_up_to <= self.position:
            self._advance()
        if self._committed_up_to <= self.position:
            return []
        with self.store.read() as tx:
            events = tx.all(
                NEXT_EVENTS, {"after": self.position, "upto": self._committed_up_to, "limit": limit}
            )
        # A page that is not full ends at the safe id, even if that id is a gap.
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
