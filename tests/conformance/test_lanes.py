"""Lanes as a person handles them: what each state and each limit lets in and out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bullpen.core.errors import BadName, LaneBusy, LaneClosed, LaneFull, UnknownAgent
from bullpen.core.message import NewMessage, Priority
from bullpen.core.models import LANES
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.lanes import (
    Batching,
    LanePolicy,
    Ordering,
    Overflow,
    archive_lane,
    configure_lane,
    create_lane,
    drain_lane,
    pause_lane,
    resume_lane,
)
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    dump,
    events,
    failed,
    in_order,
    lane,
    lane_row,
    refused,
    responses,
    rows,
    send,
    status,
    statuses,
    take,
    try_claim,
)
from tests.stores import FakeClock

NEW = NewMessage(agent=AGENT, message="x")
TWO = LanePolicy(max_depth=2)
TWO_DROPPING = LanePolicy(max_depth=2, overflow=Overflow.DROP_OLDEST)


def test_a_new_lane_is_active_empty_and_as_its_policy_says(store: Store) -> None:
    policy = LanePolicy(
        ordering=Ordering.DEADLINE,
        batching=Batching.ONE,
        max_depth=9,
        overflow=Overflow.DROP_OLDEST,
        max_attempts=3,
    )
    lane(store, policy=policy)
    row = lane_row(store)
    assert (row["state"], row["reason"], row["pending"], row["head_key"]) == (
        "active",
        None,
        0,
        None,
    )
    assert (row["ordering"], row["batching"], row["overflow"]) == ("deadline", "one", "drop_oldest")
    assert (row["max_depth"], row["max_attempts"]) == (9, 3)


def test_creating_a_lane_again_changes_nothing(store: Store) -> None:
    lane(store, policy=TWO)
    send(store)
    before = dump(store)
    lane(store, policy=LanePolicy(ordering=Ordering.PRIORITY))
    assert dump(store) == before


@pytest.mark.parametrize("name", ["", "A", "a b", "a.b", "-a", "x" * 33, "a\0"])
def test_a_lane_of_a_bad_name_is_refused(store: Store, name: str) -> None:
    refused(store, BadName, create_lane, name)


def test_a_paused_lane_lets_in_but_not_out(store: Store) -> None:
    lane(store)
    send(store, "before")
    do(store, pause_lane, AGENT, "lunch")
    send(store, "after")
    assert (lane_row(store)["state"], lane_row(store)["reason"]) == ("paused", "lunch")
    assert try_claim(store) is None
    assert try_claim(store, AGENT) is None
    do(store, resume_lane, AGENT)
    assert lane_row(store)["reason"] is None
    assert in_order(store) == ["before", "after"]


def test_a_draining_lane_lets_out_but_not_in(store: Store) -> None:
    lane(store)
    send(store, "before")
    do(store, drain_lane, AGENT)
    refused(store, LaneClosed, enqueue, NEW)
    assert in_order(store) == ["before"]
    do(store, resume_lane, AGENT)
    send(store, "after")
    assert in_order(store) == ["after"]


def test_what_failed_in_a_draining_lane_is_tried_again(store: Store) -> None:
    lane(store)
    send(store, "before")
    do(store, drain_lane, AGENT)
    failed(store, take(store).token, retry_after=0)
    assert in_order(store) == ["before"]


def test_an_archived_lane_lets_nothing_in(store: Store) -> None:
    lane(store)
    do(store, archive_lane, AGENT)
    refused(store, LaneClosed, enqueue, NEW)
    do(store, resume_lane, AGENT)
    send(store)


def test_a_lane_with_work_is_not_archived(store: Store) -> None:
    lane(store)
    send(store)
    refused(store, LaneBusy, archive_lane, AGENT)
    found = take(store)
    refused(store, LaneBusy, archive_lane, AGENT)
    done(store, found.token)
    do(store, archive_lane, AGENT)
    assert lane_row(store)["state"] == "archived"


VERBS: dict[str, Callable[[Transaction], object]] = {
    "pause": lambda tx: pause_lane(tx, "ghost", "x"),
    "resume": lambda tx: resume_lane(tx, "ghost"),
    "drain": lambda tx: drain_lane(tx, "ghost"),
    "archive": lambda tx: archive_lane(tx, "ghost"),
    "configure": lambda tx: configure_lane(tx, "ghost", TWO),
}


@pytest.mark.parametrize("name", VERBS)
def test_an_unknown_agent_has_no_lane_to_handle(store: Store, name: str) -> None:
    refused(store, UnknownAgent, VERBS[name])


def test_each_move_of_a_lane_is_one_event(store: Store) -> None:
    lane(store)
    do(store, pause_lane, AGENT, "lunch")
    do(store, pause_lane, AGENT, "again")
    do(store, resume_lane, AGENT)
    do(store, drain_lane, AGENT)
    do(store, archive_lane, AGENT)
    told = [event["type"] for event in events(store)]
    assert told == ["lane_paused", "lane_resumed", "lane_draining", "lane_archived"]
    assert lane_row(store)["state"] == "archived"


def test_a_full_lane_refuses_and_takes_again_when_there_is_room(store: Store) -> None:
    lane(store, policy=TWO)
    send(store)
    send(store)
    refused(store, LaneFull, enqueue, NEW)
    found = take(store, limit=1)
    send(store)
    done(store, found.token)
    refused(store, LaneFull, enqueue, NEW)
    assert statuses(store) == {"completed": 1, "pending": 2}


def test_waiting_in_back_off_takes_up_room(store: Store) -> None:
    lane(store, policy=TWO)
    send(store)
    failed(store, take(store).token, retry_after=60_000)
    send(store)
    refused(store, LaneFull, enqueue, NEW)


def test_a_full_lane_that_drops_buries_its_oldest_and_says_so(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=TWO_DROPPING)
    sent = []
    for text in "abcd":
        sent.append(send(store, text))
        clock.advance(1)
    assert [status(store, each) for each in sent] == ["dead", "dead", "pending", "pending"]
    assert [row["message_id"] for row in responses(store)] == sent[:2]
    assert [event["message_id"] for event in events(store, "message_dead")] == sent[:2]
    assert in_order(store) == ["c", "d"]


def test_many_at_once_bury_as_many(store: Store) -> None:
    lane(store, policy=TWO_DROPPING)
    old = [send(store), send(store)]
    with store.write() as tx:
        enqueue_many(tx, [NEW, NEW])
    assert [status(store, each) for each in old] == ["dead", "dead"]
    assert lane_row(store)["pending"] == 2


def test_more_at_once_than_the_lane_holds_are_refused_even_if_it_drops(store: Store) -> None:
    lane(store, policy=TWO_DROPPING)
    send(store)
    refused(store, LaneFull, enqueue_many, [NEW] * 3)


def test_a_lane_that_drops_keeps_its_depth_when_what_waits_is_in_back_off(store: Store) -> None:
    lane(store, policy=LanePolicy(max_depth=1, overflow=Overflow.DROP_OLDEST))
    send(store)
    failed(store, take(store).token, retry_after=60_000)
    with store.write() as tx:
        try:
            enqueue(tx, NEW)
        except LaneFull:
            return
    assert lane_row(store)["pending"] <= 1


def test_the_oldest_is_dropped_and_not_the_most_urgent(store: Store, clock: FakeClock) -> None:
    policy = LanePolicy(max_depth=2, overflow=Overflow.DROP_OLDEST, ordering=Ordering.PRIORITY)
    lane(store, policy=policy)
    old = send(store, priority=Priority.BACKGROUND)
    clock.advance(1)
    urgent = send(store, priority=Priority.CRITICAL)
    clock.advance(1)
    send(store)
    assert (status(store, old), status(store, urgent)) == ("dead", "pending")


def test_a_smaller_depth_keeps_what_is_there(store: Store) -> None:
    lane(store)
    for _ in range(4):
        send(store)
    do(store, configure_lane, AGENT, TWO)
    refused(store, LaneFull, enqueue, NEW)
    assert lane_row(store)["pending"] == 4


def test_configuring_a_lane_keeps_its_state_and_its_run(store: Store) -> None:
    lane(store)
    send(store)
    found = take(store)
    do(store, pause_lane, AGENT, "lunch")
    do(store, configure_lane, AGENT, LanePolicy(ordering=Ordering.PRIORITY, max_attempts=2))
    row = lane_row(store)
    assert (row["state"], row["reason"], row["max_attempts"]) == ("paused", "lunch", 2)
    done(store, found.token)


def test_configuring_one_lane_leaves_the_others_alone(store: Store) -> None:
    lane(store, "a")
    lane(store, "b")
    send(store, agent="b", priority=Priority.LOW)
    before = [row for row in rows(store, LANES) if row["agent"] == "b"]
    do(store, configure_lane, "a", LanePolicy(ordering=Ordering.PRIORITY))
    assert [row for row in rows(store, LANES) if row["agent"] == "b"] == before


def test_an_unknown_agent_is_refused_with_the_nearest_one_that_exists(store: Store) -> None:
    for name in ("coder", "codres"):
        lane(store, name)
    do(store, archive_lane, "codres")
    for verb in (pause_lane, resume_lane, drain_lane):
        with (
            pytest.raises(UnknownAgent, match=r"'codre' does not exist. Did you mean 'coder'\?"),
            store.write() as tx,
        ):
            verb(tx, "codre", *(() if verb is resume_lane else ("by hand",)))
