"""What threads write together is committed as if each had written alone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bullpen.core.errors import DuplicateMessage, StoreError
from bullpen.core.inspect.messages import MessageFilter, list_messages
from bullpen.core.message import NewMessage
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.store.base import Store
from bullpen.core.store.group_commit import MAX_JOBS_PER_COMMIT, GroupCommit
from bullpen.core.store.transaction import Transaction
from tests.crash.children import until
from tests.stores import Stores

LIMIT = 60.0


@pytest.fixture
def together(store: Store) -> GroupCommit:
    """Over a store with a lane."""
    with store.write() as tx:
        create_lane(tx, "a")
    return GroupCommit(store)


def _all(store: Store) -> list[str]:
    with store.read() as tx:
        return [each.message for each in list_messages(tx, MessageFilter(), 0, 10_000)]


def _say(text: str, message_id: str | None = None) -> Callable[[Transaction], str]:
    new = NewMessage(agent="a", message=text, message_id=message_id)
    return lambda tx: enqueue(tx, new).message_id


def _at_once(together: GroupCommit, works: list[Callable[[Transaction], str]]) -> list[object]:
    """Ask for all of it while a first one holds the others up; what each got, or its error."""
    held, go = threading.Event(), threading.Event()
    results: list[object] = [None] * len(works)

    def hold(tx: Transaction) -> str:
        held.set()
        assert go.wait(LIMIT)
        return enqueue(tx, NewMessage(agent="a", message="first")).message_id

    def ask(number: int, work: Callable[[Transaction], str]) -> None:
        try:
            results[number] = together.write(work)
        except Exception as error:
            results[number] = error

    first = threading.Thread(target=together.write, args=(hold,))
    first.start()
    assert held.wait(LIMIT)
    threads = [threading.Thread(target=ask, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    if together._store.dialect == "sqlite":
        until(lambda: len(together._waiting) == len(works), "all wait for the first")
    go.set()
    for thread in (first, *threads):
        thread.join(LIMIT)
        assert not thread.is_alive()
    return results


def test_everyone_gets_what_was_his(together: GroupCommit, store: Store) -> None:
    count = 3 * MAX_JOBS_PER_COMMIT
    ids = _at_once(together, [_say(f"{n}") for n in range(count)])
    assert sorted(_all(store)) == sorted(["first", *(f"{n}" for n in range(count))])
    with store.read() as tx:
        found = {
            each.message_id: each.message for each in list_messages(tx, MessageFilter(), 0, 10_000)
        }
    assert [found[str(each)] for each in ids] == [f"{n}" for n in range(count)]


def test_what_fails_is_undone_and_nothing_else(together: GroupCommit, store: Store) -> None:
    def half(tx: Transaction) -> str:
        enqueue(tx, NewMessage(agent="a", message="half"))
        raise ValueError("no further")

    works = [_say("one", "same"), half, _say("two", "same"), _say("three")]
    results = _at_once(together, works)
    assert isinstance(results[1], ValueError)
    refused = [each for each in (results[0], results[2]) if isinstance(each, DuplicateMessage)]
    assert len(refused) == 1
    left = _all(store)
    assert "half" not in left
    assert "three" in left
    assert ("one" in left) != ("two" in left)


def test_one_that_fails_alone_is_undone(together: GroupCommit, store: Store) -> None:
    def half(tx: Transaction) -> str:
        enqueue(tx, NewMessage(agent="a", message="half"))
        raise ValueError("no further")

    with pytest.raises(ValueError, match="no further"):
        together.write(half)
    assert together.write(_say("after"))
    assert _all(store) == ["after"]


def test_what_the_database_fails_in_is_told_to_all(together: GroupCommit, store: Store) -> None:
    def broken(tx: Transaction) -> str:
        raise StoreError("the disk is gone")

    results = _at_once(together, [_say("one"), broken, _say("two")])
    told = [each for each in results if isinstance(each, StoreError)]
    stored = [each for each in results if isinstance(each, str)]
    assert isinstance(results[1], StoreError)
    assert len(told) + len(stored) == 3
    assert len(_all(store)) == 1 + len(stored)
    assert together.write(_say("after"))


def test_on_sqlite_it_is_fewer_transactions(stores: Stores) -> None:
    with stores.opened(stores.settings("sqlite")) as store:
        with store.write() as tx:
            create_lane(tx, "a")
        seen: set[int] = set()

        def watch(tx: Transaction) -> str:
            seen.add(id(tx))
            kept.append(tx)  # so that no other one gets its id
            return ""

        kept: list[Transaction] = []
        _at_once(GroupCommit(store), [watch] * MAX_JOBS_PER_COMMIT)
        assert len(kept) == MAX_JOBS_PER_COMMIT
        assert len(seen) < MAX_JOBS_PER_COMMIT / 2
