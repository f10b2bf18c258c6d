"""finish: everything that a run leaves behind, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bullpen.core.errors import UnknownAgent
from bullpen.core.message import Answer, NewMessage, Outcome, Priority, ReplyTo, RoomPost
from bullpen.core.models import CHAT_MESSAGES, MESSAGES, RESPONSES
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import LanePolicy, Overflow, drain_lane, pause_lane
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    Row,
    broken_off,
    do,
    done,
    dump,
    events,
    lane,
    lane_row,
    message,
    responses,
    rows,
    send,
    status,
    take,
    texts_of,
    try_claim,
)
from tests.stores import START, FakeClock

PERSON: dict[str, Any] = {
    "channel": "slack",
    "sender": "Ada",
    "sender_id": "U1",
    "reply_to": ReplyTo("C1", "T1", "M1"),
}
TO_REVIEWER = Outcome(handoffs=(NewMessage(agent="reviewer", message="check it"),))


def _children(store: Store, parent: str) -> list[Row]:
    return [row for row in rows(store, MESSAGES) if row["parent_id"] == parent]


def test_answers_go_to_the_person_who_asked_in_order(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, "what?", **PERSON)
    answers = (
        Answer(message="first", files=("/a", "/b"), metadata='{"m": 1}'),
        Answer(message="second"),
    )
    found = take(store)
    clock.advance(7)
    done(store, found.token, Outcome(answers=answers))
    first, second = responses(store)
    assert (first["message"], first["files"], first["metadata"]) == (
        "first",
        '["/a", "/b"]',
        '{"m": 1}',
    )
    assert (second["message"], second["files"], second["seq"]) == ("second", None, 1)
    for row in (first, second):
        assert (row["channel"], row["sender"], row["sender_id"]) == ("slack", "Ada", "U1")
        assert row["reply_to"] == str(PERSON["reply_to"])
        assert (row["message_id"], row["conversation_id"]) == (sent, sent)
        assert (row["original_message"], row["agent"]) == ("what?", AGENT)
        assert (row["status"], row["delivery_attempts"], row["parts_sent"]) == ("pending", 0, 0)
        assert row["created_at"] == row["available_at"] == START + 7
        assert row["expires_at"] == START + 7 + store.settings.response_hours * 3_600_000


def test_a_finished_message_is_completed_and_the_lane_free(store: Store) -> None:
    lane(store)
    sent = send(store)
    done(store, take(store).token)
    assert (status(store, sent), message(store, sent)["claim_token"]) == ("completed", None)
    row = lane_row(store)
    assert (row["claim_token"], row["lease_expires_at"], row["pending"]) == (None, None, 0)
    assert try_claim(store) is None


def test_finish_gives_the_messages_that_it_completed(store: Store) -> None:
    lane(store)
    sent = [send(store, text) for text in "ab"]
    found = take(store)
    with store.write() as tx:
        finished = finish(tx, found.token, Outcome())
    assert finished == sent


def test_a_handoff_is_a_message_one_hop_on_that_carries_the_person_along(store: Store) -> None:
    lane(store)
    lane(store, "reviewer")
    root = send(store, "build", **PERSON)
    done(store, take(store).token, TO_REVIEWER)
    (child,) = _children(store, root)
    assert child["message_id"].startswith("internal_")
    assert (child["agent"], child["message"], child["status"]) == (
        "reviewer",
        "check it",
        "pending",
    )
    assert (child["from_agent"], child["hop"], child["conversation_id"]) == (AGENT, 1, root)
    assert (child["channel"], child["sender"], child["sender_id"]) == ("slack", "Ada", "U1")
    assert child["reply_to"] == str(PERSON["reply_to"])
    (event,) = events(store, "chain_handoff")
    assert (event["message_id"], event["conversation_id"]) == (root, root)
    done(store, take(store, "reviewer").token, Outcome(answers=(Answer(message="fine"),)))
    (answer,) = responses(store)
    assert (answer["reply_to"], answer["agent"]) == (child["reply_to"], "reviewer")


def test_handoffs_go_on_hop_by_hop_in_one_conversation(store: Store) -> None:
    lane(store)
    root = send(store)
    parents = [root]
    for hop in range(1, 4):
        handoff = Outcome(handoffs=(NewMessage(agent=AGENT, message=str(hop)),))
        done(store, take(store).token, handoff)
        (child,) = _children(store, parents[-1])
        assert (child["hop"], child["conversation_id"]) == (hop, root)
        parents.append(child["message_id"])


def test_a_handoff_keeps_what_its_writer_chose(store: Store) -> None:
    lane(store)
    lane(store, "reviewer")
    root = send(store)
    new = NewMessage(
        agent="reviewer",
        message="x",
        files=("/f",),
        priority=Priority.HIGH,
        payload="{}",
        hold_reason="over the hop limit",
    )
    done(store, take(store).token, Outcome(handoffs=(new,)))
    (child,) = _children(store, root)
    assert (child["files"], child["priority"], child["payload"]) == ('["/f"]', 1, "{}")
    assert (child["status"], child["last_error"]) == ("held", "over the hop limit")


def test_a_room_post_is_written_once_and_copied_to_each_agent(store: Store) -> None:
    for agent in (AGENT, "a", "b"):
        lane(store, agent)
    root = send(store, **PERSON)
    post = RoomPost(team_id="dev", message="hello room", to=("a", "b"))
    done(store, take(store).token, Outcome(room_posts=(post,)))
    (chat,) = rows(store, CHAT_MESSAGES)
    assert (chat["team_id"], chat["from_agent"], chat["message"]) == ("dev", AGENT, "hello room")
    copies = _children(store, root)
    assert [row["agent"] for row in copies] == ["a", "b"]
    for row in copies:
        assert row["message_id"].startswith("chat_")
        assert (row["channel"], row["from_agent"], row["team_id"]) == ("chatroom", AGENT, "dev")
        assert (row["message"], row["hop"], row["conversation_id"]) == ("hello room", 1, root)


def _full(store: Store) -> None:
    lane(store, "reviewer", LanePolicy(max_depth=1))
    send(store, agent="reviewer")


def _draining(store: Store) -> None:
    lane(store, "reviewer")
    do(store, drain_lane, "reviewer")


@pytest.mark.parametrize(
    ("make", "word"),
    [(_full, "already has 1 pending message, the limit is 1"), (_draining, "draining")],
)
def test_a_handoff_that_its_lane_does_not_take_is_held_and_the_run_is_kept(
    store: Store, make: Callable[[Store], None], word: str
) -> None:
    lane(store)
    make(store)
    root = send(store)
    outcome = Outcome(answers=(Answer(message="done"),), handoffs=TO_REVIEWER.handoffs)
    done(store, take(store, AGENT).token, outcome)
    assert status(store, root) == "completed"
    assert len(responses(store)) == 1
    (child,) = _children(store, root)
    assert child["status"] == "held"
    assert word in child["last_error"]
    (event,) = events(store, "message_held")
    assert event["message_id"] == child["message_id"]


def test_a_handoff_to_a_paused_lane_waits_there(store: Store) -> None:
    lane(store)
    lane(store, "reviewer")
    do(store, pause_lane, "reviewer", "lunch")
    root = send(store)
    done(store, take(store).token, TO_REVIEWER)
    assert _children(store, root)[0]["status"] == "pending"
    assert try_claim(store) is None


def test_a_handoff_to_a_full_lane_that_drops_makes_room(store: Store) -> None:
    lane(store)
    lane(store, "reviewer", LanePolicy(max_depth=1, overflow=Overflow.DROP_OLDEST))
    old = send(store, agent="reviewer")
    root = send(store)
    done(store, take(store, AGENT).token, TO_REVIEWER)
    assert (status(store, old), _children(store, root)[0]["status"]) == ("dead", "pending")


def test_an_agent_may_hand_a_message_to_itself(store: Store) -> None:
    lane(store)
    send(store, "one")
    again = Outcome(handoffs=(NewMessage(agent=AGENT, message="two"),))
    done(store, take(store).token, again)
    assert texts_of(take(store)) == ["two"]


def test_a_handoff_to_nobody_changes_nothing(store: Store) -> None:
    lane(store)
    send(store)
    found = take(store)
    before = dump(store)
    outcome = Outcome(handoffs=(NewMessage(agent="ghost", message="x"),))
    with pytest.raises(UnknownAgent), store.write() as tx:
        finish(tx, found.token, outcome)
    assert dump(store) == before
    done(store, found.token)


def test_a_finish_that_is_rolled_back_leaves_nothing_of_it(store: Store) -> None:
    lane(store)
    lane(store, "reviewer")
    send(store, **PERSON)
    found = take(store)
    before = dump(store)
    outcome = Outcome(
        answers=(Answer(message="a"),),
        handoffs=TO_REVIEWER.handoffs,
        room_posts=(RoomPost(team_id="dev", message="hi", to=("reviewer",)),),
    )
    with broken_off(store.write()) as tx:
        finish(tx, found.token, outcome)
    assert dump(store) == before
    done(store, found.token, outcome)
    assert len(rows(store, RESPONSES)) == 1
