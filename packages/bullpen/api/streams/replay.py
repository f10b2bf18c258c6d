"""What happened before: page by page, until the rest is at hand and a client can follow.

It is read by the thread of the client's own request; the next page when the last was taken.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from bullpen.api.streams.client import Client
from bullpen.api.streams.filter import Filter
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.shown import Shown, show
from bullpen.api.streams.wire import Ending
from bullpen.core.errors import BullpenError
from bullpen.core.events.browse import list_events
from bullpen.core.store.base import Store

log = logging.getLogger(__name__)

PAGE = 100
PAGE_SECONDS = 30.0
"""A client that takes longer for a page is too slow."""

AT_ONCE = 2
"""So many requests read pages at once: many that come back together do not stop all others."""

_turns = threading.BoundedSemaphore(AT_ONCE)


def catch_up(hub: Hub, store: Store, client: Client, position: int) -> None:
    """Give it everything after this position, and then whatever happens."""
    try:
        while not hub.follow(client, position):
            events, position = _page(store, client.filter, position, hub.position)
            hub.give(client, client.filter.frames(client.wire, events))
            if not client.drained.wait(PAGE_SECONDS):
                hub.end(client, Ending.DROPPED, "it reads too slowly what happened before")
            if client.over or client.gone:
                return
    except BullpenError as error:
        log.warning("a stream ends: %s (%s)", error, error.hint)
        hub.end(client, Ending.FAILED, "the events cannot be read")
    except Exception:
        log.exception("a stream failed")
        hub.end(client, Ending.FAILED, "something in Bullpen failed")


def pages(store: Store, wanted: Filter, position: int, upto: int) -> Iterator[list[Shown]]:
    """Everything that is wanted after this position and up to that, a page at a time."""
    while position < upto:
        events, position = _page(store, wanted, position, upto)
        yield events


def _page(store: Store, wanted: Filter, position: int, upto: int) -> tuple[list[Shown], int]:
    """The next events, and the position after them."""
    with _turns:
        with store.read() as tx:
            found = list_events(tx, wanted.wanted, position, upto, PAGE)
        shown = show(store, found)
    return shown, found[-1].id if len(found) == PAGE else max(position, upto)
