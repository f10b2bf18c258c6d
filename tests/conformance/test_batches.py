"""Which waiting messages one run answers together."""

from __future__ import annotations

import pytest

from bullpen.core.errors import BadClaim
from bullpen.core.message import HEARTBEAT, ROOM, NewMessage, Outcome, ReplyTo, RoomPost
from bullpen.core.queue.lanes import Batching, LanePolicy
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    ANSWERED,
    done,
    ids_of,
    lane,
    lane_row,
    responses,
    send,
    status,
    take,
    texts_of,
)

HERE = ReplyTo("C1", "T1", "M1")


def test_a_run_takes_what_waits_for_the_same_reply_address(store: Store) -> None:
    lane(store)
    send(store, "1", channel="slack", sender_id="U1", reply_to=HERE)
    send(store, "other thread", channel="slack", sender_id="U1", reply_to=ReplyTo("C1", "T2"))
    send(store, "2", channel="slack", sender_id="U2", reply_to=ReplyTo("C1", "T1", "M2"))
    send(store, "other channel", channel="discord", sender_id="U1", reply_to=HERE)
    send(store, "3", channel="slack", sender_id="U1", reply_to=HERE)
    first = take(store)
    assert texts_of(first) == ["1", "2", "3"]
    assert first.primary.message == "1"
    done(store, first.token)
    assert texts_of(take(store)) == ["other thread"]


def test_without_a_reply_address_the_sender_is_the_address(store: Store) -> None:
    lane(store)
    send(store, "1", sender="Ada", sender_id="U1")
    send(store, "2", sender="Ada", sender_id="U2")
    send(store, "3", sender="Ada L.", sender_id="U1")
    assert texts_of(take(store)) == ["1", "3"]


def test_a_sender_with_an_id_is_not_one_whose_name_is_that_id(store: Store) -> None:
    lane(store)
    send(store, "1", sender="Ada", sender_id="U1")
    send(store, "2", sender="U1")
    assert texts_of(take(store)) == ["1"]


def test_messages_of_another_agent_are_not_taken_along(store: Store) -> None:
    lane(store, "a")
    lane(store, "b")
    send(store, "1", "a")
    send(store, "2", "b")
    assert texts_of(take(store)) == ["1"]


def test_a_run_takes_the_waiting_room_posts_along(store: Store) -> None:
    lane(store)
    send(store, "post 1", channel=ROOM, from_agent="x", sender="x")
    send(store, "post 2", channel=ROOM, from_agent="y", sender="y")
    send(store, "person", sender="ada")
    first = take(store)
    assert texts_of(first) == ["post 1", "post 2"]
    done(store, first.token, Outcome())
    second = take(store)
    send(store, "post 3", channel=ROOM, from_agent="x", sender="x")
    done(store, second.token)
    send(store, "again", sender="ada")
    send(store, "post 4", channel=ROOM, from_agent="x", sender="x")
    assert texts_of(take(store)) == ["post 3", "post 4"]


def test_a_person_is_answered_with_the_room_posts_as_context(store: Store) -> None:
    lane(store)
    send(store, "person", sender="ada")
    send(store, "post", channel=ROOM, from_agent="x", sender="x")
    send(store, "someone else", sender="bob")
    assert texts_of(take(store)) == ["person", "post"]


def test_a_handoff_runs_alone_but_for_room_posts(store: Store) -> None:
    lane(store)
    for text in ("handoff 1", "handoff 2"):
        send(store, text, from_agent="x", channel="slack", sender="ada", reply_to=HERE)
    send(store, "post", channel=ROOM, from_agent="x", sender="x")
    send(store, "person", channel="slack", sender="ada", reply_to=HERE)
    first = take(store)
    assert texts_of(first) == ["handoff 1", "post"]
    done(store, first.token)
    assert texts_of(take(store)) == ["handoff 2"]


def test_a_person_does_not_take_a_handoff_of_the_same_address_along(store: Store) -> None:
    lane(store)
    send(store, "person", channel="slack", sender="ada", reply_to=HERE)
    send(store, "handoff", channel="slack", sender="ada", reply_to=HERE, from_agent="x")
    assert texts_of(take(store)) == ["person"]


def test_a_beat_runs_alone_for_its_session_is_forgotten(store: Store) -> None:
    lane(store)
    send(store, "beat", channel=HEARTBEAT, sender="Heartbeat", origin=HEARTBEAT)
    send(store, "post", channel=ROOM, from_agent="x", sender="x")
    beat = take(store)
    assert texts_of(beat) == ["beat"]
    done(store, beat.token)
    assert texts_of(take(store)) == ["post"]


def test_a_handoff_made_in_answer_to_a_room_post_is_a_handoff(store: Store) -> None:
    lane(store)
    lane(store, "reviewer")
    send(store)
    room = Outcome(room_posts=(RoomPost(team_id="dev", message="hello room", to=("reviewer",)),))
    done(store, take(store).token, room)
    handoffs = tuple(NewMessage(agent=AGENT, message=text) for text in ("one", "two"))
    done(store, take(store, "reviewer").token, Outcome(handoffs=handoffs))
    assert texts_of(take(store, AGENT)) == ["one"]


def test_a_lane_that_answers_one_by_one_takes_one(store: Store) -> None:
    lane(store, policy=LanePolicy(batching=Batching.ONE))
    send(store, "1")
    send(store, "2")
    send(store, "post", channel=ROOM, from_agent="x", sender="x")
    assert texts_of(take(store)) == ["1"]
    assert lane_row(store)["pending"] == 2


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_a_claim_takes_no_more_than_its_limit(store: Store, limit: int) -> None:
    lane(store)
    for n in range(4):
        send(store, str(n))
    assert texts_of(take(store, limit=limit)) == list("0123")[:limit]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(store: Store, limit: int) -> None:
    lane(store)
    send(store, "one")
    with pytest.raises(BadClaim):
        take(store, limit=limit)
    assert len(take(store).messages) == 1


def test_a_claim_takes_no_more_than_the_setting(store: Store) -> None:
    lane(store)
    for n in range(store.settings.claim_limit + 3):
        send(store, str(n))
    assert len(take(store).messages) == store.settings.claim_limit


def test_one_answer_completes_the_whole_batch(store: Store) -> None:
    lane(store)
    sent = [send(store, str(n)) for n in range(3)]
    found = take(store)
    assert ids_of(found) == sent
    done(store, found.token, ANSWERED)
    assert [status(store, each) for each in sent] == ["completed"] * 3
    (response,) = responses(store)
    assert response["message_id"] == sent[0]
