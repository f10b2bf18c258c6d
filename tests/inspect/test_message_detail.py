"""One message with all that is known of it, and the queue at a glance."""

from __future__ import annotations

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.inspect.message_detail import MessageDetail, get_message_detail
from bullpen.core.inspect.queue import QueueOverview, queue_overview
from bullpen.core.message import ErrorKind
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, done, failed, hire, send, take, to_archive
from tests.stores import FakeClock


def life_of(store: Store, message_id: str) -> MessageDetail:
    """What is known of it."""
    with store.read() as tx:
        return get_message_detail(tx, message_id)


def seen(store: Store) -> QueueOverview:
    """The whole queue."""
    with store.read() as tx:
        return queue_overview(tx)


def test_a_message_is_shown_with_its_runs_and_answers(store: Store, clock: FakeClock) -> None:
    hire(store)
    sent = send(store)
    failed(store, take(store).token, error="it broke")
    clock.advance(10 * MINUTE)
    done(store, take(store).token)
    found = life_of(store, sent)
    assert [(run.outcome, run.error) for run in found.runs] == [
        ("failed", "it broke"),
        ("completed", None),
    ]
    assert [answer.message for answer in found.answers] == ["done"]
    assert not found.archived
    to_archive(store, sent)
    found = life_of(store, sent)
    assert found.archived
    assert len(found.runs) == 2


def test_what_one_run_answered_as_well_is_shown_with_that_run(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    first, second = send(store), send(store)
    done(store, take(store).token)
    assert life_of(store, first).ran_with is None
    found = life_of(store, second)
    assert found.ran_with == first
    assert [run.message_id for run in found.runs] == [first]
    assert [answer.message for answer in found.answers] == ["done"]
    clock.advance(SECOND)
    first, second = send(store), send(store)
    failed(store, take(store).token, ErrorKind.PERMANENT, "no")
    found = life_of(store, second)
    # It is tried alone now, and no run of its own has failed yet.
    assert (found.message.status, found.message.last_error, found.runs) == ("pending", "no", ())


def test_how_many_come_first_is_told_of_what_waits_for_its_turn(store: Store) -> None:
    hire(store)
    hire(store, "other")
    for _ in range(3):
        send(store, agent="other")
    sent = [send(store) for _ in range(3)]
    later = send(store, delay=MINUTE)
    assert [life_of(store, each).before_it for each in sent] == [0, 1, 2]
    assert all(life_of(store, each).ready for each in sent)
    assert not life_of(store, later).ready


def test_the_queue_is_seen_with_what_runs_and_waits_since_when(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    hire(store, "other")
    hire(store, "idle")
    began = clock.now()
    runs = send(store, "the task")
    send(store)
    take(store)
    clock.advance(MINUTE)
    send(store, sender="somebody else")
    clock.advance(MINUTE)
    send(store, agent="other")
    do(store, pause_lane, "other", "on holiday")
    found = seen(store)
    assert (found.pending, found.processing, found.dead, found.held) == (2, 2, 0, 0)
    assert found.oldest_waiting_since == began + MINUTE
    coder, idle, other = found.lanes
    assert (coder.message_id, coder.message, coder.claimed_at) == (runs, "the task", began)
    assert coder.processing == 2
    assert idle.quiet
    assert (other.state, other.reason, other.waiting_since) == ("paused", "on holiday", clock.now())
    assert other.message_id is None
