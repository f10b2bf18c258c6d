"""Several transactions at once: they wait for each other, and never in a circle."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from bullpen.core.clock import MINUTE
from bullpen.core.errors import DuplicateMessage, IllegalMove, StaleToken, StoreBusy
from bullpen.core.message import Accepted, Claim, NewMessage, Outcome
from bullpen.core.models import MESSAGES
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import LOCK_LANE, lock_lane
from bullpen.core.queue.manage import cancel
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import (
    AGENT,
    ANSWERED,
    done,
    lane,
    rows,
    send,
    statuses,
    take,
)
from tests.stores import FakeClock, Stores

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for the other side."""
    with ThreadPoolExecutor(8) as made:
        yield made


def _until_one_waits(
    store: Store, other: Future[Claim | None] | Future[Accepted] | Future[None]
) -> None:
    """Return once the other side waits for a lock (or is done already)."""
    while not other.done():
        with store.read() as tx:
            row = tx.fetch(WAITING)
        if row is not None and row[0]:
            return


def _postgres_only(store: Store) -> None:
    if store.dialect != "postgresql":
        pytest.skip("SQLite has one writer: the other side waits before it reads anything")


def _enqueue(store: Store, new: NewMessage) -> Accepted:
    with store.write() as tx:
        return enqueue(tx, new)


def test_one_event_delivered_twice_at_the_same_time_is_one_message(
    store: Store, pool: ThreadPoolExecutor
) -> None:
    _postgres_only(store)
    lane(store)
    new = NewMessage(agent=AGENT, message="hi", channel="slack", event_ids=("Ev1",))
    with store.write() as tx:
        first = enqueue(tx, new)
        tx.fetch("SELECT 1")  # so that the server has done it
        other = pool.submit(_enqueue, store, new)
        _until_one_waits(store, other)
    with contextlib.suppress(StoreBusy):  # which says: try again
        assert other.result(timeout=30) == Accepted(first.message_id, fresh=False)
    assert _enqueue(store, new) == Accepted(first.message_id, fresh=False)
    assert len(rows(store, MESSAGES)) == 1


@pytest.mark.parametrize("agent", [AGENT, "other"])
def test_one_id_sent_twice_at_the_same_time_is_one_message(
    store: Store, pool: ThreadPoolExecutor, agent: str
) -> None:
    _postgres_only(store)
    lane(store)
    lane(store, "other")
    with store.write() as tx:
        enqueue(tx, NewMessage(agent=AGENT, message="hi", message_id="mine-1"))
        tx.fetch("SELECT 1")  # so that the server has done it
        again = NewMessage(agent=agent, message="hi", message_id="mine-1")
        other = pool.submit(_enqueue, store, again)
        _until_one_waits(store, other)
    with pytest.raises(DuplicateMessage) as caught:
        other.result(timeout=30)
    assert caught.value.status == "pending"
    assert len(rows(store, MESSAGES)) == 1


def test_a_claim_locks_lanes_in_the_order_that_all_transactions_keep(
    store: Store, clock: FakeClock, pool: ThreadPoolExecutor
) -> None:
    """Lanes by name: who holds `a` may ask for `b` while a claim, which had `b`, asks for `a`."""
    _postgres_only(store)
    for agent in ("a", "b"):
        lane(store, agent)
        send(store, agent=agent)
        send(store, agent=agent, delay=MINUTE)
    clock.advance(MINUTE)

    def try_claim() -> Claim | None:
        with store.write() as tx:
            return claim(tx, "worker-1")

    with store.write() as tx:
        lock_lane(tx, "a")
        other = pool.submit(try_claim)
        _until_one_waits(store, other)
        lock_lane(tx, "b")
    other.result(timeout=30)


def test_a_message_that_comes_in_while_a_run_ends_is_claimed_next(
    store: Store, pool: ThreadPoolExecutor
) -> None:
    """Who ends the run began to look before the message was committed, and must see it after."""
    _postgres_only(store)
    lane(store)
    send(store, "first")
    found = take(store)

    def finish_it() -> None:
        with store.write() as tx:
            finish(tx, found, ANSWERED)

    with store.write() as tx:
        enqueue(tx, NewMessage(agent=AGENT, message="second"))
        other = pool.submit(finish_it)
        _until_one_waits(store, other)
    other.result(timeout=30)
    assert take(store).primary.message == "second"


def test_processors_that_claim_at_once_get_different_lanes(
    store: Store, pool: ThreadPoolExecutor
) -> None:
    agents = [f"agent{n}" for n in range(8)]
    for agent in agents:
        lane(store, agent)
        send(store, agent=agent)
    start = threading.Barrier(8)

    def try_claim(_: int) -> Claim | None:
        start.wait()
        with store.write(durable=False) as tx:
            return claim(tx, "worker-1")

    found = list(pool.map(try_claim, range(8)))
    got = sorted(each.agent for each in found if each is not None)
    assert len(set(got)) == len(got)
    while len(got) < 8:  # who found a lane locked went away empty, and comes again
        got.append(take(store).agent)
    assert sorted(got) == agents


def test_two_stores_on_one_database_never_run_one_agent_twice(
    stores: Stores, settings: Settings, clock: FakeClock, store: Store, pool: ThreadPoolExecutor
) -> None:
    lane(store)
    for n in range(20):
        send(store, str(n), sender=str(n))
    running = threading.Semaphore(1)
    answered: list[str] = []

    def work(mine: Store) -> None:
        while len(answered) < 20:
            with mine.write(durable=False) as tx:
                found = claim(tx, "worker-1")
            if found is None:
                continue
            assert running.acquire(blocking=False), "two runs of one agent at once"
            answered.append(found.primary.message)
            running.release()
            done(mine, found.token)

    with stores.opened(settings, clock) as second:
        for each in [pool.submit(work, one) for one in (store, second)]:
            each.result(timeout=60)
    assert answered == [str(n) for n in range(20)]


@pytest.mark.parametrize("first", ["finish", "cancel"])
def test_of_a_finish_and_a_cancel_at_once_one_wins_whole(
    store: Store, pool: ThreadPoolExecutor, first: str
) -> None:
    lane(store)
    sent = send(store)
    found = take(store)
    start = threading.Barrier(2)

    def attempt(verb: Callable[[], None]) -> bool:
        start.wait()
        try:
            verb()
        except (StaleToken, IllegalMove):
            return False
        return True

    def finish_it() -> None:
        with store.write() as tx:
            finish(tx, found.token, ANSWERED)

    def cancel_it() -> None:
        with store.write() as tx:
            cancel(tx, sent)

    verbs = [finish_it, cancel_it] if first == "finish" else [cancel_it, finish_it]
    assert sum(pool.map(attempt, verbs)) == 1
    assert statuses(store) in ({"completed": 1}, {"cancelled": 1})


def _watch_lane_locks(
    tx: Transaction, locked: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Call this with each lane that the transaction locks, as soon as it has the lock."""
    one, deferred, each = tx.one, tx.one_deferred, tx.one_each

    def watched_one(statement: Any, values: Any) -> Any:  # noqa: ANN401 - as the transaction's own
        row = one(statement, values)
        if statement is LOCK_LANE:
            locked(str(values["agent"]))
        return row

    def watched_deferred(statement: Any, values: Any) -> Any:  # noqa: ANN401
        reply = deferred(statement, values)
        if statement is LOCK_LANE:
            row = reply()
            locked(str(values["agent"]))
            return lambda: row
        return reply

    def watched_each(statement: Any, values: Any) -> Any:  # noqa: ANN401
        rows = each(statement, values)
        if statement is LOCK_LANE:
            for one_of_them in values:
                locked(str(one_of_them["agent"]))
        return rows

    monkeypatch.setattr(tx, "one", watched_one)
    monkeypatch.setattr(tx, "one_deferred", watched_deferred)
    monkeypatch.setattr(tx, "one_each", watched_each)


def _hand_to(*agents: str) -> Outcome:
    return Outcome(handoffs=tuple(NewMessage(agent=agent, message="yours") for agent in agents))


def test_a_finish_locks_its_lanes_in_the_order_of_their_names(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent in ("ann", "mia", "zoe"):
        lane(store, agent)
    for by_token in (True, False):
        send(store, agent="mia")
        claimed = take(store, "mia")
        order: list[str] = []
        with store.write() as tx:
            _watch_lane_locks(tx, order.append, monkeypatch)
            finish(tx, claimed.token if by_token else claimed, _hand_to("zoe", "ann"))
        assert list(dict.fromkeys(order)) == ["ann", "mia", "zoe"]


def test_two_agents_that_hand_to_each_other_at_once_wait_in_no_circle(
    store: Store, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stops after its first lock, until the other has its own or evidently waits for one."""
    _postgres_only(store)
    for agent in ("ann", "zoe"):
        lane(store, agent)
    for _ in range(3):
        claims = {}
        for agent in ("ann", "zoe"):
            send(store, agent=agent)
            claims[agent] = take(store, agent, limit=1)
        barrier = threading.Barrier(2)

        def hand_over(mine: Claim, other: str, barrier: threading.Barrier = barrier) -> None:
            def wait(_: str) -> None:
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait(0.3)

            with store.write() as tx:
                _watch_lane_locks(tx, wait, monkeypatch)
                finish(tx, mine, _hand_to(other))

        sides = [
            pool.submit(hand_over, claims["ann"], "zoe"),
            pool.submit(hand_over, claims["zoe"], "ann"),
        ]
        for side in sides:
            side.result(60)
    assert statuses(store)["completed"] == 6
