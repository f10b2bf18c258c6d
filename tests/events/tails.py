"""Events written and tails that read them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import Connection, insert

from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import MessageEnqueued
from bullpen.core.events.log import EventRecord
from bullpen.core.events.tail import EventTail
from bullpen.core.models import EVENTS
from bullpen.core.store.base import Store

LIMIT_SECONDS = 90.0


def happen(store: Store, *names: str) -> None:
    """Let something happen to each of these agents, in one transaction."""
    with store.write() as tx:
        for name in names:
            append_event(tx, MessageEnqueued(MessageRef(name, None, None)))


class Undone(Exception):
    pass


def undo(store: Store, *names: str) -> None:
    """Let something happen in a transaction that is rolled back."""
    with suppress(Undone), store.write() as tx:
        for name in names:
            append_event(tx, MessageEnqueued(MessageRef(name, None, None)))
        raise Undone


def happen_in(connection: Connection, name: str) -> None:
    """Let something happen in a transaction that the test holds open."""
    connection.execute(insert(EVENTS).values(type="message_enqueued", agent=name, created_at=0))


def names(events: list[EventRecord]) -> list[str]:
    """To whom it happened, in order."""
    return [str(event.agent) for event in events]


def read_all(tail: EventTail, limit: int = 500) -> list[EventRecord]:
    """Read until there is nothing new, twice: on PostgreSQL a first look may only note writers."""
    found: list[EventRecord] = []
    empty = 0
    while empty < 2:
        page = tail.read(limit)
        assert len(page) <= limit
        empty = 0 if page else empty + 1
        found += page
    return found


def read_until(tail: EventTail, enough: Callable[[list[EventRecord]], bool]) -> list[EventRecord]:
    """Read until there is enough, within a generous time."""
    found: list[EventRecord] = []
    deadline = time.monotonic() + LIMIT_SECONDS
    while not enough(found):
        assert time.monotonic() < deadline, f"only {names(found)}"
        page = tail.read()
        found += page
        if not page:
            time.sleep(0.005)
    return found
