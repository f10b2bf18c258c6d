"""Replays what happened before a stream began: page by page, as its client takes them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue

from bullpen.api.streams.client import Client, Filter
from bullpen.api.streams.frames import EncodedEvent, EndReason, encode_events
from bullpen.api.streams.hub import Hub
from bullpen.core.errors import BullpenError
from bullpen.core.events.log import list_events
from bullpen.core.store.base import Store

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
TOO_SLOW = "the client reads the stored events too slowly"
PAGE = 100
PAGE_BYTES = 1 << 19
"""The maximum size of a page in bytes."""

ENCODED_TOGETHER = 20
PAGE_SECONDS = 30.0
"""A client that takes longer for a page is too slow."""

MAX_PAGE_READERS = 2
"""The number of requests that read pages at once, so that a mass reconnect blocks no others."""

_page_readers = threading.BoundedSemaphore(MAX_PAGE_READERS)


def catch_up(hub: Hub, store: Store, client: Client, position: int) -> None:
    """Write all events after this position to the client, then make it follow live events.

    The calling thread reads the backlog page by page, each after the client has read the previous
    one, until the hub's recent events cover the rest.
    """
    after = write_page(hub, store, client, position)
    while after is not None:
        if not client.drained.wait(PAGE_SECONDS):
            hub.end(client, EndReason.DROPPED, TOO_SLOW)
        after = write_page(hub, store, client, after)


def write_page(hub: Hub, store: Store, client: Client, position: int) -> int | None:
    """Write the next page of the backlog; return the position after it, or None at the end."""
    try:
        if client.closing or client.disconnected or hub.follow(client, position):
            return None
        events, position = _page(store, client.filter, position, hub.position)
        hub.write_to(client, client.filter.frames(client.wire, events))
    except BullpenError as error:
        log.warning("ended a stream: %s (%s)", error, error.hint)
        hub.end(client, EndReason.FAILED, "the events could not be read")
        return None
    except Exception:
        log.exception("a stream failed")
        hub.end(client, EndReason.FAILED, "internal error")
        return None
    return position


class Replays:
    """Sends the backlog to streams without a thread of their own.

    A client that reads slowly is parked here and blocks no thread.
    """

    def __init__(self, hub: Hub, store: Store) -> None:
        self._hub = hub
        self._store = store
        self._ready: SimpleQueue[tuple[Client, int] | None] = SimpleQueue()
        self._parked: dict[Client, tuple[int, float]] = {}
        """Clients that have not read their page: the position after it, and their deadline."""
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, name="replays", daemon=True)
            for _ in range(MAX_PAGE_READERS)
        ]

    def start(self) -> None:
        """Start the threads."""
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """End the threads."""
        for _ in self._threads:
            self._ready.put(None)

    def add(self, client: Client, position: int) -> None:
        """Write all events after this position to the client, then make it follow live events."""
        client.on_drained = self._resume
        self._ready.put((client, position))

    def _run(self) -> None:
        while True:
            try:
                task = self._ready.get(timeout=CHECK_SECONDS if self._parked else None)
            except Empty:
                self._drop_slow()
                continue
            if task is None:
                break
            client, position = task
            after = write_page(self._hub, self._store, client, position)
            if after is not None:
                self._park(client, after)
            else:
                client.on_drained = None

    def _park(self, client: Client, position: int) -> None:
        with self._lock:
            self._parked[client] = (position, time.monotonic() + PAGE_SECONDS)
        if client.drained.is_set():
            self._resume(client)

    def _resume(self, client: Client) -> None:
        with self._lock:
            parked = self._parked.pop(client, None)
        if parked is not None:
            self._ready.put((client, parked[0]))

    def _drop_slow(self) -> None:
        now = time.monotonic()
        with self._lock:
            slow = [each for each, (_, deadline) in self._parked.items() if now >= deadline]
        for each in slow:
            self._hub.end(each, EndReason.DROPPED, TOO_SLOW)


def backlog_pages(
    store: Store, wanted: Filter, position: int, upto: int
) -> Iterator[list[EncodedEvent]]:
    """Yield the matching events after `position` and up to `upto`, a page at a time."""
    while position < upto:
        events, position = _page(store, wanted, position, upto)
        yield events


def _page(store: Store, wanted: Filter, position: int, upto: int) -> tuple[list[EncodedEvent], int]:
    """The next events, and the position after them."""
    with _page_readers:
        with store.read() as tx:
            events = list_events(tx, wanted.store_filter, position, upto, PAGE)
        encoded: list[EncodedEvent] = []
        while len(encoded) < len(events) and sum(each.size for each in encoded) < PAGE_BYTES:
            encoded += encode_events(store, events[len(encoded) : len(encoded) + ENCODED_TOGETHER])
    more = len(encoded) < len(events) or len(events) == PAGE
    return encoded, encoded[-1].record.id if more else max(position, upto)
