"""What waits for a person, what runs, and what a person ends: found, and no other touched."""

from __future__ import annotations

import pytest

from bullpen.core.bulk import Killed, kill, lock_message_in_state, retry_all_dead
from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.company import remove_agent
from bullpen.core.errors import BadText, IllegalMove, LaneClosed, UnknownMessage
from bullpen.core.inspect.messages import list_dead_or_held
from bullpen.core.inspect.queue import count_completed, list_running
from bullpen.core.message import ErrorKind
from bullpen.core.states import MessageState
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    do,
    done,
    failed,
    hire,
    ids_of,
    message,
    refused,
    send,
    status,
    take,
    to_archive,
    try_claim,
)
from tests.stores import FakeClock

DEAD, HELD = MessageState.DEAD, MessageState.HELD


def die(store: Store, agent: str = "coder", kind: ErrorKind = ErrorKind.PERMANENT) -> str:
    """A message that is dead, or held."""
    sent = send(store, agent=agent)
    failed(store, take(store, agent).token, kind)
    return sent


def names(store: Store, state: MessageState = DEAD, limit: int = 10, **more: object) -> list[str]:
    """A page of those that wait for a person."""
    with store.read() as tx:
        return [each.message_id for each in list_dead_or_held(tx, state, limit=limit, **more)]  # type: ignore[arg-type]


def test_the_latest_to_die_is_first_and_pages_go_by_number(store: Store, clock: FakeClock) -> None:
    hire(store)
    hire(store, "other")
    first = send(store, agent="other")
    held = take(store, "other")
    clock.advance(SECOND)
    second = die(store)
    clock.advance(SECOND)
    failed(store, held.token, ErrorKind.PERMANENT)
    assert names(store) == [first, second]
    clock.advance(SECOND)
    third = die(store)
    assert names(store, limit=2) == [third, first]
    assert names(store, since=0, limit=2) == [first, second]
    assert names(store, since=message(store, second)["id"]) == [third]


def test_they_are_found_by_agent_and_kind_and_the_held_apart(store: Store) -> None:
    hire(store)
    hire(store, "other")
    mine, theirs = die(store), die(store, "other")
    waits = die(store, kind=ErrorKind.NEEDS_PERSON)
    assert names(store, HELD) == [waits]
    assert names(store, agent="other") == [theirs]
    assert names(store, agent="coder", kind="permanent") == [mine]
    assert names(store, kind="crash") == []
    for odd in ("\0", "\ud800"):
        with store.read() as tx, pytest.raises(BadText):
            list_dead_or_held(tx, DEAD, agent=odd, limit=1)


def test_one_is_found_by_number_and_by_id_in_its_state_only(store: Store) -> None:
    hire(store)
    dead, waits = die(store), send(store)
    with store.write() as tx:
        assert lock_message_in_state(tx, dead, DEAD).message_id == dead
        assert lock_message_in_state(tx, str(message(store, dead)["id"]), DEAD).message_id == dead
    for name in (waits, "nothing", "0", "9" * 30):
        refused(store, UnknownMessage, lock_message_in_state, name, DEAD)
    refused(store, UnknownMessage, lock_message_in_state, dead, HELD)


def test_the_dead_are_tried_again_those_that_came_first_first(store: Store) -> None:
    hire(store)
    hire(store, "other")
    dead = [die(store) for _ in range(3)]
    theirs = die(store, "other")
    with store.write() as tx:
        assert retry_all_dead(tx, "coder", "permanent", 2) == 2
    assert [status(store, each) for each in (*dead, theirs)] == [
        "pending",
        "pending",
        "dead",
        "dead",
    ]
    with store.write() as tx:
        assert retry_all_dead(tx, None, None, 10) == 2
        assert retry_all_dead(tx, None, None, 10) == 0


def test_the_dead_of_a_removed_agent_stay_and_keep_nobody_else(store: Store) -> None:
    hire(store)
    hire(store, "gone")
    lost, mine = die(store, "gone"), die(store)
    do(store, remove_agent, "gone")
    with store.write() as tx:
        assert retry_all_dead(tx, None, None, 10) == 1
    assert (status(store, lost), status(store, mine)) == ("dead", "pending")
    refused(store, LaneClosed, retry_all_dead, "gone", None, 10)


def test_what_runs_is_told_run_by_run_the_longest_first(store: Store, clock: FakeClock) -> None:
    hire(store, "b")
    hire(store, "a")
    send(store, "b1", "b", sender_id="U1")
    send(store, "b2", "b", sender_id="U1")
    first = take(store, "b")
    clock.advance(SECOND)
    send(store, "a1", "a")
    second = take(store, "a")
    with store.read() as tx:
        found = list_running(tx)
    assert [each.message.message for each in found] == ["b1", "b2", "a1"]
    assert found[0].claimed_at == clock.now() - SECOND
    assert {each.worker for each in found} == {"worker-1"}
    assert found[2].lease_expires_at == second.lease_expires_at
    done(store, first.token)
    with store.read() as tx:
        assert [each.message.message for each in list_running(tx)] == ["a1"]


def test_what_lost_its_lease_still_runs_until_it_is_taken_back(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    send(store)
    take(store)
    clock.advance(10 * MINUTE)
    with store.read() as tx:
        (found,) = list_running(tx)
    assert found.lease_expires_at < clock.now()


def test_killing_one_of_a_batch_gives_the_others_back(store: Store, clock: FakeClock) -> None:
    hire(store)
    first = send(store, "one", sender_id="U1")
    second = send(store, "two", sender_id="U1")
    assert ids_of(take(store)) == [first, second]
    with store.write() as tx:
        assert kill(tx, second) == Killed("coder", ran=True)
    assert (status(store, first), status(store, second)) == ("pending", "cancelled")
    clock.advance(MINUTE)
    assert ids_of(take(store)) == [first]


def test_killing_what_waits_stops_nothing(store: Store) -> None:
    hire(store)
    send(store, sender_id="U1")
    claim = take(store)
    waits = send(store, sender_id="U2")
    with store.write() as tx:
        assert kill(tx, str(message(store, waits)["id"])) == Killed("coder", ran=False)
    done(store, claim.token)
    assert try_claim(store) is None


def test_what_is_over_or_not_there_is_not_killed(store: Store) -> None:
    hire(store)
    sent = send(store)
    done(store, take(store).token)
    refused(store, IllegalMove, kill, sent)
    refused(store, UnknownMessage, kill, "nothing")
    to_archive(store, sent)
    refused(store, UnknownMessage, kill, sent)


def test_the_completed_are_counted_and_no_other(store: Store) -> None:
    hire(store)
    for _ in range(3):
        send(store)
        done(store, take(store).token)
    die(store)
    send(store)
    with store.read() as tx:
        assert count_completed(tx) == 3
