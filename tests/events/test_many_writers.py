"""Six writers, three readers at once: each reader gets every committed event once, in order."""

from __future__ import annotations

import random
import threading
import time

import pytest

from bullpen.core.events.append import append_event
from bullpen.core.events.base import UnknownEvent
from bullpen.core.events.log import EventRecord
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store

WRITERS = 6
EACH = 25
LIMIT_SECONDS = 120.0


class Undone(Exception):
    pass


def numbered(writer: int, number: float) -> UnknownEvent:
    """An event that is told apart from all others."""
    return UnknownEvent("numbered", {"writer": writer, "number": number})


def write(store: Store, writer: int, seed: int, committed: dict[int, list[int]]) -> None:
    """Write numbered events, wait a random time before each commit, and undo some of them."""
    chance = random.Random(10 * seed + writer)
    for number in range(EACH):
        try:
            with store.write() as tx:
                append_event(tx, numbered(writer, number))
                if chance.random() < 0.3:
                    append_event(tx, numbered(writer, number + 0.5))
                time.sleep(chance.choice((0.0, 0.0, 0.001, 0.004, 0.02)))
                if chance.random() < 0.15:
                    raise Undone
        except Undone:
            continue
        committed[writer].append(number)
        time.sleep(chance.choice((0.0, 0.002)))


def follow(store: Store, limit: int, done: threading.Event, into: list[EventRecord]) -> None:
    """Read all the time, and to the end when the writers are done."""
    tail = EventTail(store, 0)
    empty = 0
    deadline = time.monotonic() + LIMIT_SECONDS
    while empty < 3 and time.monotonic() < deadline:
        over = done.is_set()
        page = tail.read(limit)
        into += page
        empty = empty + 1 if over and not page else 0
        if not page:
            time.sleep(0.001)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_reader_gets_every_committed_event_once_and_in_order(store: Store, seed: int) -> None:
    done = threading.Event()
    committed: dict[int, list[int]] = {writer: [] for writer in range(WRITERS)}
    read: dict[int, list[EventRecord]] = {1: [], 7: [], 500: []}
    writers = [
        threading.Thread(target=write, args=(store, writer, seed, committed))
        for writer in committed
    ]
    readers = [
        threading.Thread(target=follow, args=(store, limit, done, read[limit])) for limit in read
    ]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join(LIMIT_SECONDS)
    done.set()
    for thread in readers:
        thread.join(LIMIT_SECONDS)
    everything = read[500]
    for events in read.values():
        ids = [event.id for event in events]
        assert ids == sorted(set(ids))
        assert events == everything
    for writer, numbers in committed.items():
        mine = [event.data["number"] for event in everything if event.data["writer"] == writer]
        assert [number for number in mine if isinstance(number, int)] == numbers
        assert mine == sorted(mine, key=lambda number: float(str(number)))
        assert {int(float(str(number))) for number in mine} == set(numbers)
