"""Replay for a stream that reconnects: recent events from memory, older ones from the database."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from bullpen.api.streams.encode import EncodedEvent
from bullpen.core.events.tail import EventRecord, EventTail
from bullpen.core.store.base import Store

MAX_RECENT_EVENTS = 500
"""So many events are kept."""

MAX_RECENT_BYTES = 1 << 19
"""And so many bytes: all of them must find room with a client."""

SETTLE_SECONDS = 5.0

Show = Callable[[Sequence[EventRecord]], list[EncodedEvent]]


class RecentEvents:
    """The events after `floor` and up to `end`. They are made ready when somebody wants them."""

    def __init__(self, position: int, show: Show) -> None:
        self.floor = position
        self.end = position
        self._show = show
        self._events: deque[EventRecord | EncodedEvent] = deque()
        self._size = 0

    def add(self, events: Sequence[EventRecord], end: int) -> None:
        """What happened next."""
        self._events.extend(events)
        self.end = end
        self._trim()

    def covers(self, position: int) -> bool:
        """Whether everything after this position is here."""
        return position >= self.floor

    def after(self, position: int) -> list[EncodedEvent]:
        """The events after this position."""
        raw = [
            each for each in self._events if isinstance(each, EventRecord) and each.id > position
        ]
        if raw:
            self._make_ready(raw)
        found = [each for each in self._events if isinstance(each, EncodedEvent)]
        found = [each for each in found if each.event.id > position]
        self._trim()
        return found

    def _make_ready(self, raw: Sequence[EventRecord]) -> None:
        ready = {each.event.id: each for each in self._show(raw)}
        self._size += sum(each.size for each in ready.values())
        self._events = deque(
            ready.get(each.id, each) if isinstance(each, EventRecord) else each
            for each in self._events
        )

    def _trim(self) -> None:
        while len(self._events) > MAX_RECENT_EVENTS or (
            self._size > MAX_RECENT_BYTES and len(self._events) > 1
        ):
            oldest = self._events.popleft()
            if isinstance(oldest, EncodedEvent):
                self._size -= oldest.size
                oldest = oldest.event
            self.floor = oldest.id


def load_recent(store: Store, show: Show) -> tuple[EventTail, RecentEvents]:
    """The ring with what happened last, and the reader of what happens next."""
    now = EventTail.from_now(store).position
    tail = EventTail(store, max(0, now - MAX_RECENT_EVENTS))
    ring = RecentEvents(tail.position, show)
    deadline = time.monotonic() + SETTLE_SECONDS
    while tail.position < now and time.monotonic() < deadline:
        events = tail.read()
        ring.add(events, tail.position)
        if not events:
            time.sleep(0.005)
    return tail, ring
