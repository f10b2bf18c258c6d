"""kill -9 at each named point of a message's life, on both stores."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace

import pytest

from bullpen.core.errors import DuplicateMessage
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.account import Account, check_integrity, dump
from tests.crash.children import Children
from tests.crash.recovery import later, run_to_the_end, take_back
from tests.crash.victim import AGENT, COMMITS, LOST, MESSAGE_ID, Death, Point, live
from tests.crash.work import Order, Platform, Task, work_off

ORDERS = (Order.TWICE, Order.HAND, Order.POST)

LEFT: dict[Point, list[str | None]] = {
    Point.BEFORE_ENQUEUE_COMMIT: [None],
    Point.ENQUEUE_COMMIT_SENT: [None, "pending"],
    Point.ENQUEUED: ["pending"],
    Point.BEFORE_CLAIM_COMMIT: ["pending"],
    Point.CLAIM_COMMIT_SENT: ["pending", "processing"],
    Point.CLAIMED: ["processing"],
    Point.OUTPUT: ["processing"],
    Point.BEFORE_FINISH_COMMIT: ["processing"],
    Point.FINISH_COMMIT_SENT: ["processing", "completed"],
    Point.FINISHED: ["completed"],
}
"""In which state a death at this point may leave the message; None: it was never accepted."""


def _status(store: Store) -> str | None:
    row = Account(store).messages.get(MESSAGE_ID)
    return None if row is None else str(row["status"])


def _send_again(store: Store, order: Order) -> None:
    """As a client does that had no answer: the same once more, under the same id."""
    with suppress(DuplicateMessage), store.write() as tx:
        enqueue(tx, Task("life", 1, order).to(AGENT, MESSAGE_ID))


def _die_and_recover(
    settings: Settings, children: Children, platform: Platform, point: Point, order: Order
) -> None:
    code = children.run(live, settings, platform.path, Death(point), order)
    assert code == -signal.SIGKILL
    with later(settings) as store:
        left = _status(store)
        assert left in LEFT[point]
        _send_again(store, order)
        run_to_the_end(store, platform)
        account = Account(store)
        account.check()
        account.check_deliveries(platform)
        crashed = ["crashed"] if left == "processing" else []
        assert account.outcomes(MESSAGE_ID) == [*crashed, "completed"]
        assert account.messages[MESSAGE_ID]["crash_count"] == len(crashed)
        assert account.messages[MESSAGE_ID]["retry_count"] == 0
        check_integrity(store)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("point", [point for point in Point if point not in COMMITS])
def test_kill_9_at_a_named_point_gives_one_answer_and_counts_one_crash_at_most(
    settings: Settings, children: Children, platform: Platform, point: Point, order: Order
) -> None:
    _die_and_recover(settings, children, platform, point, order)


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["postgresql"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("point", COMMITS)
def test_kill_9_while_a_commit_is_on_its_way_is_all_or_nothing(
    settings: Settings, children: Children, platform: Platform, point: Point, order: Order
) -> None:
    _die_and_recover(settings, children, platform, point, order)


def test_a_dead_runs_message_waits_for_the_end_of_its_lease_and_no_longer(
    settings: Settings, children: Children, platform: Platform
) -> None:
    lasting = replace(settings, lease_seconds=600)
    children.run(live, lasting, platform.path, Death(Point.OUTPUT), Order.ANSWER)
    now = open_store(settings)
    before = dump(now)
    assert (take_back(now), work_off(now)) == (0, 0)
    assert dump(now) == before
    now.close()
    with later(settings, minutes=10) as store:
        assert (take_back(store), work_off(store)) == (1, 1)
        Account(store).check()


@pytest.mark.parametrize("point", [Point.CLAIMED, Point.OUTPUT])
def test_a_worker_that_slept_through_its_lease_changes_nothing(
    settings: Settings, children: Children, platform: Platform, point: Point
) -> None:
    asleep = Death(point, by=signal.SIGSTOP)
    victim = children.start(live, settings, platform.path, asleep, Order.TWICE)
    victim.wait_until_stopped()
    with later(settings, alone=False) as store:
        run_to_the_end(store, platform)
        before = dump(store)
        victim.send(signal.SIGCONT)
        assert victim.wait() == LOST
        assert dump(store) == before
        account = Account(store)
        account.check()
        assert account.outcomes(MESSAGE_ID) == ["crashed", "completed"]


def test_a_worker_that_slept_while_its_message_runs_elsewhere_changes_nothing(
    settings: Settings, children: Children, platform: Platform
) -> None:
    """The lane is claimed again when the sleeper wakes: only the token tells the two apart."""
    asleep = Death(Point.OUTPUT, by=signal.SIGSTOP)
    first = children.start(live, settings, platform.path, asleep, Order.TWICE)
    first.wait_until_stopped()
    with later(settings, alone=False) as store:
        take_back(store)
        with store.write() as tx:
            second = claim(tx, "second")
        assert second is not None
        before = dump(store)
        first.send(signal.SIGCONT)
        assert first.wait() == LOST
        assert dump(store) == before
