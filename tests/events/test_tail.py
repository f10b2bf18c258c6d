"""Readers of the events: each at its own pace, none misses anything or sees it twice."""

from __future__ import annotations

import pytest

from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from tests.events.tails import happen, names, read_all, undo
from tests.stores import Stores


def test_nothing_happened_reads_as_nothing(store: Store) -> None:
    assert read_all(EventTail(store, 0)) == []
    assert read_all(EventTail.from_now(store)) == []


def test_all_events_are_read_in_order(store: Store) -> None:
    expected = [f"a{number}" for number in range(20)]
    for name in expected:
        happen(store, name)
    events = read_all(EventTail(store, 0))
    assert names(events) == expected
    assert [event.id for event in events] == sorted({event.id for event in events})


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 500])
def test_pages_of_any_size_leave_nothing_out(store: Store, limit: int) -> None:
    expected = [f"a{number}" for number in range(20)]
    happen(store, *expected)
    assert names(read_all(EventTail(store, 0), limit)) == expected


def test_readers_at_different_speeds_and_sizes_all_read_everything(store: Store) -> None:
    tails = {limit: EventTail(store, 0) for limit in (1, 3, 500)}
    read: dict[int, list[str]] = {limit: [] for limit in tails}
    expected = []
    for number in range(12):
        happen(store, f"a{number}", f"b{number}")
        expected += [f"a{number}", f"b{number}"]
        for limit, tail in tails.items():
            if number % limit == 0:
                read[limit] += names(tail.read(limit))
    for limit, tail in tails.items():
        read[limit] += names(read_all(tail, limit))
    assert read == dict.fromkeys(tails, expected)


def test_from_now_starts_with_what_happens_next(store: Store) -> None:
    happen(store, "before")
    tail = EventTail.from_now(store)
    assert read_all(tail) == []
    happen(store, "after")
    assert names(read_all(tail)) == ["after"]


def test_a_reader_that_was_away_goes_on_at_its_position(stores: Stores, store: Store) -> None:
    happen(store, "a", "b", "c")
    tail = EventTail(store, 0)
    first = tail.read(2)
    while not first:
        first = tail.read(2)
    happen(store, "d")
    with stores.opened(store.settings) as reopened:
        again = EventTail(reopened, tail.position)
        assert names([*first, *read_all(again)]) == ["a", "b", "c", "d"]


def test_the_position_is_that_of_the_last_event_read(store: Store) -> None:
    happen(store, "a", "b", "c")
    tail = EventTail(store, 0)
    events = read_all(tail, 1)
    for at, event in enumerate(events):
        rest = read_all(EventTail(store, event.id))
        assert rest == events[at + 1 :]
    assert tail.position == events[-1].id


def test_ids_that_a_rollback_left_out_stop_no_reader(store: Store) -> None:
    tail = EventTail(store, 0)
    for number in range(5):
        undo(store, "undone", "undone too")
        happen(store, f"a{number}")
    assert names(read_all(tail, 2)) == [f"a{number}" for number in range(5)]


def test_what_happens_while_a_page_is_read_comes_after_it(store: Store) -> None:
    tail = EventTail(store, 0)
    happen(store, "a", "b")
    page = tail.read(1)
    while not page:
        page = tail.read(1)
    happen(store, "c")
    assert names([*page, *read_all(tail)]) == ["a", "b", "c"]
