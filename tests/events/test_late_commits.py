"""PostgreSQL gives ids before it commits: a lower id may appear after a higher one.

Each test holds transactions open on connections of its own, so that nothing depends on luck.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Connection, text

from bullpen.core.events import tail as tail_module
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from tests.events.tails import (
    LIMIT_SECONDS,
    happen,
    happen_in,
    names,
    read_all,
    read_until,
)
from tests.stores import FakeClock, Stores

pytestmark = pytest.mark.postgres

Opened = Callable[[], Connection]


@pytest.fixture
def pg(stores: Stores, clock: FakeClock) -> Iterator[Store]:
    """A store on PostgreSQL."""
    with stores.opened(stores.settings("postgresql"), clock) as opened:
        yield opened


@pytest.fixture
def opened(pg: Store) -> Iterator[Opened]:
    """Opens connections, each in a transaction when it is first used."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(pg.engine.connect())


def test_a_lower_id_that_is_committed_later_is_not_skipped(pg: Store, opened: Opened) -> None:
    tail = EventTail(pg, 0)
    late = opened()
    happen_in(late, "first id, last commit")
    happen(pg, "second id, first commit")
    for _ in range(5):
        assert tail.read() == []
    late.commit()
    events = read_all(tail)
    assert names(events) == ["first id, last commit", "second id, first commit"]
    assert events[0].id < events[1].id


def test_a_reader_that_began_before_does_not_pass_a_late_commit(pg: Store, opened: Opened) -> None:
    tail = EventTail(pg, 0)
    happen(pg, "a")
    assert names(read_all(tail)) == ["a"]
    late = opened()
    happen_in(late, "b")
    happen(pg, "c")
    assert "c" not in names(read_all(tail))
    late.commit()
    assert names(read_all(tail)) == ["b", "c"]


def test_one_that_rolls_back_is_passed(pg: Store, opened: Opened) -> None:
    tail = EventTail(pg, 0)
    undone = opened()
    happen_in(undone, "undone")
    happen(pg, "a")
    assert read_all(tail) == []
    undone.rollback()
    assert names(read_all(tail)) == ["a"]


def test_one_whose_connection_dies_is_passed(pg: Store, opened: Opened) -> None:
    tail = EventTail(pg, 0)
    dying, watcher = opened(), opened()
    happen_in(dying, "undone")
    pid = dying.execute(text("SELECT pg_backend_pid()")).scalar_one()
    happen(pg, "a")
    assert read_all(tail) == []
    watcher.execute(text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": pid})
    watcher.commit()
    assert names(read_until(tail, lambda found: len(found) == 1)) == ["a"]
    dying.invalidate()


def test_several_late_writers_are_all_waited_for(pg: Store, opened: Opened) -> None:
    tail = EventTail(pg, 0)
    writers = [opened() for _ in range(3)]
    for number, writer in enumerate(writers):
        happen_in(writer, f"w{number}")
    happen(pg, "last")
    read = names(read_all(tail))
    for writer in (writers[2], writers[0], writers[1]):
        read += names(read_all(tail))
        assert read == ["w0", "w1", "w2", "last"][: len(read)]
        writer.commit()
    read += names(read_all(tail))
    assert read == ["w0", "w1", "w2", "last"]


def test_a_transaction_that_writes_elsewhere_delays_nobody(pg: Store, opened: Opened) -> None:
    tail = EventTail(pg, 0)
    long = opened()
    long.execute(text("INSERT INTO chat_messages VALUES (1, 't', 'a', 'hi', 0)"))
    long.execute(text("SELECT count(*) FROM events"))
    for number in range(5):
        happen(pg, f"a{number}")
        assert names(read_all(tail)) == [f"a{number}"]
    long.rollback()


def test_a_writer_in_another_database_of_the_server_delays_nobody(
    pg: Store, opened: Opened, stores: Stores
) -> None:
    with (
        stores.opened(stores.settings("postgresql")) as other,
        other.engine.connect() as elsewhere,
    ):
        happen_in(elsewhere, "not ours")
        tail = EventTail(pg, 0)
        happen(pg, "a")
        assert names(read_all(tail)) == ["a"]


def test_writers_that_follow_each_other_without_a_gap_do_not_stop_the_tail(
    pg: Store, opened: Opened
) -> None:
    tail = EventTail(pg, 0)
    read: list[str] = []
    writers = [opened() for _ in range(2)]
    happen_in(writers[0], "w0")
    for number in range(1, 10):
        happen_in(writers[number % 2], f"w{number}")
        writers[(number - 1) % 2].commit()
        read += names(tail.read())
        read += names(tail.read())
    assert len(read) >= 5
    writers[1].commit()
    read += names(read_all(tail))
    assert read == [f"w{number}" for number in range(10)]


def test_from_now_waits_for_whoever_is_writing(
    pg: Store, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "WRITER_WAIT_SECONDS", LIMIT_SECONDS)
    late = opened()
    happen_in(late, "lower")
    happen(pg, "higher")
    made: list[EventTail] = []
    thread = threading.Thread(target=lambda: made.append(EventTail.from_now(pg)))
    thread.start()
    thread.join(0.5)
    assert thread.is_alive()
    late.commit()
    thread.join(LIMIT_SECONDS)
    (tail,) = made
    happen(pg, "next")
    assert names(read_all(tail))[-1:] == ["next"]


def test_from_now_does_not_wait_for_ever(
    pg: Store, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_module, "WRITER_WAIT_SECONDS", 0.2)
    late = opened()
    happen_in(late, "never ends")
    tail = EventTail.from_now(pg)
    late.commit()
    assert names(read_all(tail)) == ["never ends"]
