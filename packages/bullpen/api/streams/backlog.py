"""Replay for a stream that reconnects: recent events from memory, older ones from the database."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from bullpen.api.streams.frames import EncodedEvent
from bullpen.core.events.log import EventRecord
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store

MAX_RECENT_EVENTS = 500
"""The maximum number of events that are kept."""

MAX_RECENT_BYTES = 1 << 19
"""The maximum size of the kept events, which must fit into a client's buffer."""

SETTLE_SECONDS = 5.0

EncodeEvents = Callable[[Sequence[EventRecord]], list[EncodedEvent]]


class RecentEvents:
    """The events after `floor` and up to `end`, encoded when a client first needs them."""

    def __init__(self, position: int, encode_events: EncodeEvents) -> None:
        self.floor = position
        self.end = position
        self._encode_events = encode_events
        self._events: deque[EventRecord | EncodedEvent] = deque()
        self._size = 0

    def add(self, events: Sequence[EventRecord], end: int) -> None:
        """Append the events that follow."""
        self._events.extend(events)
        self.end = end
        self._trim()

    def covers(self, position: int) -> bool:
        """Whether every event after this position is kept."""
        return position >= self.floor

    def after(self, position: int) -> list[EncodedEvent]:
        """The events after this position."""
        raw = [
            each for each in self._events if isinstance(each, EventRecord) and each.id > position
        ]
        if raw:
            self._encode(raw)
        encoded = [each for each in self._events if isinstance(each, EncodedEvent)]
        encoded = [each for each in encoded if each.record.id > position]
        self._trim()
        return encoded

    def _encode(self, raw: Sequence[EventRecord]) -> None:
        encoded = {each.record.id: each for each in self._encode_events(raw)}
        self._size += sum(each.size for each in encoded.values())
        self._events = deque(
            encoded.get(each.id, each) if isinstance(each, EventRecord) else each
            for each in self._events
        )

    def _trim(self) -> None:
        while len(self._events) > MAX_RECENT_EVENTS or (
            self._size > MAX_RECENT_BYTES and len(self._events) > 1
        ):
            oldest = self._events.popleft()
            if isinstance(oldest, EncodedEvent):
                self._size -= oldest.size
                oldest = oldest.record
            self.floor = oldest.id


def load_recent(store: Store, encode_events: EncodeEvents) -> tuple[EventTail, RecentEvents]:
    """The latest events, and a reader of those that follow."""
    now = EventTail.from_now(store).position
    tail = EventTail(store, max(0, now - MAX_RECENT_EVENTS))
    recent = RecentEvents(tail.position, encode_events)
    deadline = time.monotonic() + SETTLE_SECONDS
    while tail.position < now and time.monotonic() < deadline:
        events = tail.read()
        recent.add(events, tail.position)
        if not events:
            time.sleep(0.005)
    return tail, recent
