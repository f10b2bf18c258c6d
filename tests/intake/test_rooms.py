"""Rooms: who hears a post, what waits is one batch, and who is answered."""

from __future__ import annotations

import pytest

from bullpen.core.errors import BadText, LaneFull, UnknownTeam
from bullpen.core.intake import post_in_room
from bullpen.core.queue.lanes import LanePolicy
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from tests.answers.talk import answer, children, heard, posts, said, team, told, write
from tests.conformance.conftest import lanes_tell_the_truth  # noqa: F401
from tests.conformance.verbs import (
    do,
    dump,
    events,
    hire,
    refused,
    responses,
    take,
    texts_of,
    try_claim,
)


@pytest.fixture
def store(store: Store) -> Store:
    """A store with a team of three."""
    team(store, "a", "b", "c")
    return store


def _post(store: Store, text: str, sender: str = "Ada") -> str:
    with store.write() as tx:
        return post_in_room(tx, "dev", text, sender).conversation_id


def test_a_persons_post_goes_to_every_member(store: Store) -> None:
    conversation = _post(store, "hello")
    claims = [take(store, agent) for agent in ("a", "b", "c")]
    assert [texts_of(each) for each in claims] == [["hello"]] * 3
    for each in claims:
        primary = each.primary
        assert (primary.channel, primary.sender, primary.from_agent) == ("chatroom", "Ada", None)
        assert (primary.team_id, primary.conversation_id, primary.hop) == ("dev", conversation, 0)
    assert posts(store) == [("dev", "Ada", "hello")]
    assert conversation.startswith("chatroom_")


def test_an_agents_post_goes_to_every_member_but_itself(store: Store) -> None:
    root = write(store, "@b go")
    answer(store, "b", "[#dev: hello]")
    found = children(store, root)
    assert [(row["agent"], row["from_agent"], row["channel"]) for row in found] == [
        ("a", "b", "chatroom"),
        ("c", "b", "chatroom"),
    ]
    assert {(row["team_id"], row["hop"]) for row in found} == {("dev", 1)}
    assert posts(store) == [("dev", "b", "hello")]


def test_posts_that_wait_for_a_busy_agent_are_one_batch(store: Store) -> None:
    write(store, "@a go")
    busy = take(store, "a")
    for text in ("one", "two", "three"):
        _post(store, text)
    write(store, "@b go")
    said(store, take(store, "b"), "[#dev: four]")
    assert try_claim(store, "a") is None
    said(store, busy, "done")
    assert texts_of(take(store, "a")) == ["one", "two", "three", "four"]


def test_the_answer_to_a_post_is_no_response_and_is_in_the_history(store: Store) -> None:
    _post(store, "hello")
    answer(store, "a", "I have read it")
    assert responses(store) == []
    assert posts(store) == [("dev", "Ada", "hello")]
    assert heard(store, "a") == [("user", "hello"), ("assistant", "I have read it")]


def test_an_agent_may_answer_a_post_in_the_room(store: Store) -> None:
    _post(store, "hello")
    answer(store, "a", "[#dev: hello Ada]")
    assert posts(store)[-1] == ("dev", "a", "hello Ada")
    assert responses(store) == []
    assert texts_of(take(store, "b")) == ["hello", "hello Ada"]


def test_a_handoff_because_of_a_post_answers_nobody(store: Store) -> None:
    conversation = _post(store, "hello")
    answer(store, "a", "[@b: look]")
    (row,) = children(store, conversation)
    assert (row["channel"], row["team_id"]) == ("internal", "dev")
    answer(store, "b", "one")
    answer(store, "b", "two")
    assert told(store) == []
    assert ("assistant", "two") in heard(store, "b")


def test_a_person_who_is_answered_with_posts_as_context_is_answered(store: Store) -> None:
    write(store, "@a go")
    _post(store, "hello")
    claim = take(store, "a")
    assert texts_of(claim) == ["go", "hello"]
    said(store, claim, "done")
    assert told(store) == [("a", "done")]


def test_a_room_of_one_has_nobody_to_tell(store: Store) -> None:
    do(store, add_team, Team(id="solo", leader="a", members=("a",)))
    root = write(store, "@a go")
    answer(store, "a", "[#solo: hello]")
    assert children(store, root) == []
    assert posts(store) == [("solo", "a", "hello")]


def test_nothing_is_posted_that_cannot_be_delivered(store: Store) -> None:
    refused(store, UnknownTeam, post_in_room, "nowhere", "hello", "Ada")
    refused(store, BadText, post_in_room, "dev", "", "Ada")
    refused(store, BadText, post_in_room, "dev", "a\0b", "Ada")
    hire(store, "full", policy=LanePolicy(max_depth=1))
    do(store, add_team, Team(id="late", leader="a", members=("a", "full")))
    write(store, "@full go")
    before = dump(store)
    refused(store, LaneFull, post_in_room, "late", "hello", "Ada")
    assert dump(store) == before


def test_the_end_of_a_conversation_in_a_room_is_told(store: Store) -> None:
    conversation = _post(store, "hello")
    for agent in ("a", "b", "c"):
        assert events(store, "team_chain_end") == []
        answer(store, agent, "fine")
    (event,) = events(store, "team_chain_end")
    assert event["conversation_id"] == conversation
