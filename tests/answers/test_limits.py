"""The limits of a conversation: it stops by itself, says so once, and a person decides."""

from __future__ import annotations

import shlex

import pytest

from bullpen.core.answers.complete import complete, fail
from bullpen.core.clock import HOUR
from bullpen.core.company import remove_agent
from bullpen.core.errors import LaneClosed
from bullpen.core.intake import post_in_room
from bullpen.core.message import ErrorKind, Failure, RunOutput, Usage
from bullpen.core.models import MESSAGES
from bullpen.core.queue.conversations import cancel_conversation, resume_conversation
from bullpen.core.queue.lanes import drain_lane
from bullpen.core.queue.manage import hold
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.answers.beside import beside
from tests.answers.talk import ADA, answer, children, posts, said, talk, team, told, write
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import (
    do,
    events,
    hire,
    refused,
    responses,
    rows,
    send,
    status,
    statuses,
    take,
    to_archive,
    try_claim,
)
from tests.stores import FakeClock, Stores

BOUND = 200
"""More runs than any limit allows."""

PING_PONG = "[@coder: ping] [@reviewer: pong]"


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home whose owner is on telegram."""
    return stores.settings(kind, owner_channel="telegram", owner_id="42")


def _let_go(store: Store, conversation: str) -> int:
    with store.write() as tx:
        return resume_conversation(tx, conversation)


def _owner(store: Store) -> list[str]:
    return [row["message"] for row in responses(store) if row["channel"] == "telegram"]


def _person(store: Store) -> list[str]:
    """What Ada was told beside the answers."""
    return [
        row["message"]
        for row in responses(store)
        if row["channel"] == "slack" and "to other agents are held" in row["message"]
    ]


def _held(store: Store) -> list[str]:
    return [row["last_error"] for row in rows(store, MESSAGES) if row["status"] == "held"]


def test_hop_limit_ends_ping_pong_with_a_notice(store: Store) -> None:
    hire(store, "coder")
    hire(store, "reviewer")
    root = write(store, "@coder go")
    runs = talk(store, PING_PONG, BOUND)
    assert runs == store.settings.max_hops + 1
    assert statuses(store) == {"completed": runs, "held": 1}
    assert _held(store) == ["the conversation has reached its limit of 8 handoffs in a row"]
    assert (len(_person(store)), len(_owner(store))) == (1, 1)
    for text in (*_person(store), *_owner(store)):
        assert "8 handoffs" in text
        assert f"bullpen queue resume --conversation {root}" in text
        assert f"bullpen queue cancel --conversation {root}" in text
    assert (responses(store)[-1]["sender_id"], responses(store)[-1]["reply_to"]) == ("42", None)
    assert [event["conversation_id"] for event in events(store, "message_held")] == [root]


def test_a_room_that_answers_itself_stops(store: Store) -> None:
    team(store, "a", "b", "c", "d")
    root = write(store, "[#dev: hello]")
    runs = talk(store, "[#dev: me too]", BOUND)
    made = [row for row in rows(store, MESSAGES) if row["status"] != "held"]
    assert len(made) <= store.settings.max_messages
    assert runs <= store.settings.max_messages
    assert _held(store)
    assert posts(store)[0][1] == "Ada"
    # Nobody has an address in a room: the room is told, and the owner.
    (notice,) = (text for _, author, text in posts(store) if author == "bullpen")
    assert root in notice
    assert _owner(store) == [notice]


def test_the_message_limit_counts_what_the_whole_answer_would_make(store: Store) -> None:
    team(store, "a", "b", "c", "d", max_messages=6)
    write(store, "@dev go")
    answer(store, "a", "[@b: 1] [@c: 2] [@d: 3]")
    answer(store, "b", "[@c: 4] [@d: 5]")
    answer(store, "c", "[@a: 6]")
    assert _held(store) == ["the conversation has reached its limit of 6 messages"]
    answer(store, "d", "[@a,b,c: 7]")
    assert len(_held(store)) == 4
    assert (len(_person(store)), len(_owner(store))) == (1, 1)


def test_archived_messages_count_as_well(store: Store) -> None:
    team(store, "a", "b", max_messages=2)
    root = write(store, "@dev go")
    answer(store, "a", "[@b: 1]")
    to_archive(store, root)
    answer(store, "b", "[@a: 2]")
    assert _held(store) == ["the conversation has reached its limit of 2 messages"]
    # The person's address is in the archive now.
    assert len(_person(store)) == 1


def test_the_cost_limit_counts_the_run_that_reaches_it(store: Store) -> None:
    team(store, "a", "b", max_cost=1.0)
    write(store, "@dev go")
    answer(store, "a", "[@b: 1]", usage=Usage(cost=0.6))
    assert _held(store) == []
    answer(store, "b", "[@a: 2]", usage=Usage(cost=0.5))
    assert _held(store) == ["the conversation has reached its cost limit of $1.00 (spent: $1.10)"]


def test_the_cost_limit_counts_what_failed_and_crashed_runs_cost(
    store: Store, clock: FakeClock
) -> None:
    team(store, "a", "b", max_cost=1.0)
    write(store, "@dev go")
    for kind, cost in ((ErrorKind.RETRYABLE, 0.4), (ErrorKind.CRASH, 0.3)):
        failure = Failure(kind=kind, error="it broke", usage=Usage(cost=cost))
        do(store, fail, take(store, "a").token, failure)
        clock.advance(HOUR)
    answer(store, "a", "[@b: 1]", usage=Usage(cost=0.2))
    assert _held(store) == []
    answer(store, "b", "[@a: 2]", usage=Usage(cost=0.2))
    assert _held(store) == ["the conversation has reached its cost limit of $1.00 (spent: $1.10)"]


def test_no_limit_of_cost_is_any_cost(store: Store) -> None:
    team(store, "a", "b")
    write(store, "@dev go")
    answer(store, "a", "[@b: 1]", usage=Usage(cost=1e6))
    assert _held(store) == []


@pytest.mark.parametrize(("hops", "runs"), [(0, 1), (2, 3), (20, 21)])
def test_the_limits_of_the_team_come_before_the_settings(
    store: Store, hops: int, runs: int
) -> None:
    team(store, "coder", "reviewer", max_hops=hops)
    write(store, "@dev go")
    assert talk(store, PING_PONG, BOUND) == runs


def test_an_answer_without_handoffs_is_never_held(store: Store) -> None:
    team(store, "a", max_hops=0, max_messages=0, max_cost=0.01)
    write(store, "@dev go")
    answer(store, "a", "done [#dev: done]", usage=Usage(cost=5))
    assert (_held(store), len(told(store))) == ([], 1)


def test_what_is_let_go_goes_on(store: Store) -> None:
    hire(store, "coder")
    hire(store, "reviewer")
    root = write(store, "@coder go")
    talk(store, PING_PONG, BOUND)
    assert _let_go(store, root) == 1
    assert talk(store, "fine", BOUND) == 1
    assert statuses(store) == {"completed": 10}
    assert _let_go(store, root) == 0
    assert len(_owner(store)) == 1


def test_it_is_told_again_when_it_stops_again(store: Store) -> None:
    hire(store, "coder")
    hire(store, "reviewer")
    root = write(store, "@coder go")
    talk(store, PING_PONG, BOUND)
    _let_go(store, root)
    assert talk(store, PING_PONG, BOUND) == 1
    assert (len(_person(store)), len(_owner(store))) == (2, 2)


def test_what_is_cancelled_ends(store: Store) -> None:
    hire(store, "coder")
    hire(store, "reviewer")
    root = write(store, "@coder go")
    talk(store, PING_PONG, BOUND)
    with store.write() as tx:
        assert cancel_conversation(tx, root) == 1
    assert statuses(store) == {"completed": 9, "cancelled": 1}
    assert try_claim(store) is None


def test_a_message_held_for_another_reason_does_not_hide_the_limit(store: Store) -> None:
    team(store, "a", "b", max_hops=1)
    hire(store, "closed")
    do(store, drain_lane, "closed")
    write(store, "@dev go")
    answer(store, "a", "[@closed: x] [@b: y]")
    assert (len(_held(store)), _owner(store)) == (1, [])
    answer(store, "b", "[@a: z]")
    assert (len(_person(store)), len(_owner(store))) == (1, 1)


def test_the_first_message_is_let_go_with_its_conversation(store: Store) -> None:
    hire(store, "coder")
    root = write(store, "@coder go")
    other = write(store, "@coder other")
    for each in (root, other):
        do(store, hold, each, "wait")
    assert _let_go(store, root) == 1
    assert (status(store, root), status(store, other)) == ("pending", "held")


def test_what_is_for_a_removed_agent_keeps_nobody_else_from_going_on(store: Store) -> None:
    team(store, "a", "b", "c", max_hops=0)
    root = write(store, "@dev go")
    answer(store, "a", "[@b: x] [@c: y]")
    do(store, remove_agent, "b")
    assert _let_go(store, root) == 1
    assert sorted(row["status"] for row in children(store, root)) == ["held", "pending"]
    answer(store, "c", "fine")
    refused(store, LaneClosed, resume_conversation, root)


def test_a_conversation_named_by_a_client_cannot_give_the_owner_a_command(store: Store) -> None:
    team(store, "a", "b", max_hops=0)
    evil = "x; rm -rf ~ #"
    write(store, "@dev go")
    with store.engine.begin() as connection:  # as an earlier version may have stored it
        connection.execute(MESSAGES.update().values(message_id=evil, conversation_id=evil))
    answer(store, "a", "[@b: x]")
    (text,) = _owner(store)
    for line in text.splitlines()[1:]:
        assert shlex.split(line.partition(": ")[2], comments=True)[-1] == evil


def test_the_owner_who_asked_is_told_once(store: Store) -> None:
    team(store, "a", "b", max_hops=0)
    write(store, "@dev go", channel="telegram", sender="owner", sender_id="42", reply_to=None)
    answer(store, "a", "[@b: x]")
    assert len([text for _, text in told(store) if "to other agents are held" in text]) == 1


def test_a_person_reached_by_way_of_others_is_told_at_the_first_address(store: Store) -> None:
    """An agent that was asked in a room hands on: no person is in its message."""
    team(store, "a", "b", max_hops=1)
    root = write(store, "@a go")
    answer(store, "a", "[#dev: x]")
    answer(store, "b", "[@a: y]")
    (text,) = _person(store)
    assert text.startswith("@b cannot hand on work")
    (row,) = (
        row for row in responses(store) if row["message"] == text and row["channel"] == "slack"
    )
    assert (row["message_id"], row["agent"], row["reply_to"]) == (root, "b", str(ADA["reply_to"]))


def test_when_nobody_is_left_to_be_told_the_owner_is(store: Store) -> None:
    hire(store, "a")
    hire(store, "b")
    send(store, "x", "a", channel="internal", from_agent="b", conversation_id="gone", hop=8)
    answer(store, "a", "[@b: y]")
    assert (_person(store), len(_owner(store))) == ([], 1)


def test_two_runs_at_once_do_not_both_take_the_last_place(store: Store) -> None:
    team(store, "a", "b", "c", "d", max_messages=5)
    with store.write() as tx:
        conversation = post_in_room(tx, "dev", "hello", "ada").conversation_id
    first, second = (take(store, agent) for agent in ("a", "b"))
    with store.write() as tx:
        complete(tx, first, RunOutput(text="[@c: one]"), ())
        other = beside(store, tx, said, store, second, "[@d: two]")
    other.join(60)
    found = [row["status"] for row in children(store, conversation)]
    assert sorted(found) == ["held", "pending"]


def test_a_handoff_keeps_the_team_and_so_its_limits(store: Store) -> None:
    team(store, "a", "b", max_hops=1)
    hire(store, "outsider")
    root = write(store, "@dev go")
    answer(store, "a", "[@outsider: x]")
    (row,) = children(store, root)
    assert row["team_id"] == "dev"
    answer(store, "outsider", "[@b: y]")
    assert _held(store) == ["the conversation has reached its limit of 1 handoff in a row"]
