"""Messages that are meant by what they have in common: each is found once, whatever moves."""

from __future__ import annotations

from typing import Any

import pytest

from bullpen.core.bulk import BulkResult, apply_to_messages
from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.company import remove_agent
from bullpen.core.errors import BadText, LaneClosed
from bullpen.core.inspect.messages import message_scans, newest_messages
from bullpen.core.message import ErrorKind
from bullpen.core.queue.manage import cancel, hold, retry
from bullpen.core.states import MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.scan import BatchCursor, RowRef, Selection
from tests.conformance.verbs import (
    do,
    done,
    failed,
    hire,
    message,
    send,
    status,
    statuses,
    take,
    to_archive,
)
from tests.stores import FakeClock

DEAD, HELD, PENDING = MessageState.DEAD, MessageState.HELD, MessageState.PENDING
PROCESSING, CANCELLED = MessageState.PROCESSING, MessageState.CANCELLED
ANY = Selection()


def die(store: Store, agent: str = "coder", error: str = "it broke", **more: Any) -> str:  # noqa: ANN401
    """A message that is dead."""
    sent = send(store, agent=agent, **more)
    failed(store, take(store, agent).token, ErrorKind.PERMANENT, error)
    return sent


def walked(
    store: Store, *states: MessageState, wanted: Selection = ANY, piece: int = 2
) -> list[str]:
    """All that are meant, as they are met; as many as were counted."""
    found: list[str] = []
    with store.read() as tx:
        walk = BatchCursor(message_scans(tx, states, wanted), wanted)
        count = walk.count(tx)
        while met := walk.next(tx, piece):
            assert len(met) <= piece
            found += [each.message_id for each in met]
    assert len(found) == count
    return found


def listed(
    store: Store,
    state: MessageState | None = None,
    wanted: Selection = ANY,
    limit: int = 50,
    *,
    archived: bool = False,
) -> list[str]:
    """The newest of them."""
    with store.read() as tx:
        found = newest_messages(tx, wanted, state, limit, archived=archived)
    return [each.message_id for each in found]


def test_the_dead_are_met_once_each_the_first_to_die_first(store: Store, clock: FakeClock) -> None:
    hire(store)
    dead = []
    for each in range(7):
        dead.append(die(store))
        clock.advance(SECOND * (each % 2))  # several in one millisecond
    assert walked(store, DEAD) == dead
    assert walked(store, HELD) == []


def test_they_are_chosen_by_what_they_have_in_common(store: Store, clock: FakeClock) -> None:
    hire(store)
    hire(store, "other")
    slow = die(store, error="Timeout after 30 s", sender="Ann", sender_id="u1")
    clock.advance(HOUR)
    theirs = die(store, "other", error="100% full", channel="slack")
    sent = send(store)
    for _ in range(5):
        failed(store, take(store).token, ErrorKind.CRASH, "gone")
    for wanted, found in (
        (Selection(agent="other"), [theirs]),
        (Selection(channel="slack"), [theirs]),
        (Selection(sender="Ann"), [slow]),
        (Selection(sender="u1"), [slow]),
        (Selection(kind="crash"), [sent]),
        (Selection(error="crash"), [sent]),
        (Selection(error="TIMEOUT"), [slow]),
        (Selection(error="Timeout after"), [slow]),
        (Selection(error="0% f"), [theirs]),
        (Selection(error="0_ f"), []),
        (Selection(since=clock.now() - MINUTE), [theirs, sent]),
        (Selection(before=clock.now() - MINUTE), [slow]),
        (Selection(conversation=slow), [slow]),
        (Selection(conversation=slow, agent="other"), []),
        (Selection(agent="other", error="full", since=clock.now()), [theirs]),
    ):
        assert walked(store, DEAD, wanted=wanted) == found, wanted
    for odd in ("\0", "\ud800"):
        with pytest.raises(BadText):
            walked(store, DEAD, wanted=Selection(error=odd))


@pytest.mark.parametrize("agent", [None, "coder"])
def test_what_waits_is_met_delayed_or_not_and_what_runs_after_it(
    store: Store, agent: str | None
) -> None:
    hire(store)
    runs = [send(store, sender="a"), send(store, sender="a")]
    take(store)
    waits = [send(store) for _ in range(5)]
    later = [send(store, delay=MINUTE * each) for each in (2, 1)]
    held = send(store)
    do(store, hold, held, "wait")
    wanted = Selection(agent=agent)
    assert walked(store, HELD, PENDING, PROCESSING, wanted=wanted) == [
        *(held, *waits, *reversed(later), *runs)
    ]
    assert walked(store, PENDING, wanted=Selection(agent="nobody")) == []


def test_what_moved_since_it_was_met_keeps_no_other(store: Store) -> None:
    hire(store)
    hire(store, "gone")
    mine, quick, closed = die(store), die(store), die(store, "gone")
    do(store, remove_agent, "gone")
    do(store, retry, quick)
    found = [
        RowRef(message(store, each)["id"], each, message(store, each)["agent"])
        for each in (mine, quick, closed)
    ]
    with store.write() as tx:
        batch: BulkResult = apply_to_messages(tx, retry, found)
    assert batch.done == 1
    first, second = batch.refused
    assert (first.id, first.error.code) == (quick, "illegal_move")
    assert (second.id, type(second.error)) == (closed, LaneClosed)
    assert status(store, mine) == "pending"
    assert status(store, closed) == "dead"


def test_a_walk_goes_on_while_what_it_met_leaves(store: Store) -> None:
    hire(store)
    sent = [send(store, sender=str(each)) for each in range(9)]
    with store.read() as tx:
        walk = BatchCursor(message_scans(tx, [PENDING], ANY), ANY)
    met = []
    while True:
        with store.read() as tx:
            found = walk.next(tx, 2)
        if not found:
            break
        met += [each.message_id for each in found]
        with store.write() as tx:
            apply_to_messages(tx, cancel, found[:1])
    assert met == sent
    assert statuses(store) == {"cancelled": 5, "pending": 4}


def test_the_newest_are_listed_first_in_every_state(store: Store, clock: FakeClock) -> None:
    hire(store)
    died = [die(store), die(store)]
    runs = send(store)
    take(store)
    clock.advance(HOUR)
    waits = [send(store), send(store, delay=MINUTE), send(store)]
    stopped = send(store)
    do(store, cancel, stopped)
    everything = [stopped, *reversed(waits), runs, *reversed(died)]
    assert listed(store) == everything
    assert listed(store, limit=2) == everything[:2]
    assert listed(store, PENDING) == [*reversed(waits)]
    assert listed(store, PENDING, limit=1) == [waits[2]]
    assert listed(store, PROCESSING) == [runs]
    assert listed(store, DEAD) == [*reversed(died)]
    assert listed(store, DEAD, limit=1) == [died[1]]
    assert listed(store, CANCELLED) == [stopped]
    assert listed(store, wanted=Selection(since=clock.now())) == everything[:4]
    assert listed(store, wanted=Selection(before=clock.now() - 1)) == everything[4:]
    assert listed(store, PENDING, Selection(conversation=waits[0])) == [waits[0]]


def test_archived_ones_are_listed_if_they_are_asked_for(store: Store) -> None:
    hire(store)
    old, new = send(store, sender="ann"), send(store, sender="bob")
    for _ in range(2):
        done(store, take(store).token)
    to_archive(store, old)
    assert listed(store) == [new]
    assert listed(store, archived=True) == [new, old]
    assert listed(store, MessageState.COMPLETED, archived=True, limit=1) == [new]
    assert listed(store, wanted=Selection(sender="ann"), archived=True) == [old]
    assert listed(store, wanted=Selection(conversation=old), archived=True) == [old]
    assert listed(store, DEAD, archived=True) == []
