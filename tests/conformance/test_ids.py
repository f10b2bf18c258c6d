"""Ids: a client's own makes the enqueue idempotent; a generated one is never a duplicate."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from bullpen.core.errors import DuplicateMessage
from bullpen.core.ids import Ids
from bullpen.core.message import NewMessage
from bullpen.core.models import MESSAGES
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.manage import cancel, hold
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    failed,
    lane,
    message,
    refused,
    rows,
    send,
    take,
    to_archive,
)
from tests.stores import FakeClock, Stores

OWN = NewMessage(agent=AGENT, message="again", message_id="mine-1")


def _bring_to(store: Store, state: str) -> None:
    """Have the message of the id `mine-1` in this state."""
    send(store, message_id="mine-1")
    if state in ("processing", "completed", "dead"):
        token = take(store).token
        if state == "completed":
            done(store, token)
        elif state == "dead":
            for _ in range(4):
                failed(store, token, retry_after=0)
                token = take(store).token
            failed(store, token)
    elif state == "held":
        do(store, hold, "mine-1", "wait")
    elif state == "cancelled":
        do(store, cancel, "mine-1")


@pytest.mark.parametrize(
    "state", ["pending", "processing", "held", "completed", "dead", "cancelled"]
)
def test_a_second_message_of_the_same_id_is_refused_with_the_state_of_the_first(
    store: Store, state: str
) -> None:
    lane(store)
    _bring_to(store, state)
    error = refused(store, DuplicateMessage, enqueue, OWN)
    assert isinstance(error, DuplicateMessage)
    assert (error.message_id, error.status) == ("mine-1", state)


@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_an_archived_id_stays_taken(store: Store, state: str) -> None:
    lane(store)
    _bring_to(store, state)
    to_archive(store, "mine-1")
    error = refused(store, DuplicateMessage, enqueue, OWN)
    assert isinstance(error, DuplicateMessage)
    assert (error.message_id, error.status) == ("mine-1", state)


def test_a_duplicate_for_another_agent_is_a_duplicate(store: Store) -> None:
    lane(store)
    lane(store, "other")
    send(store, message_id="mine-1")
    new = NewMessage(agent="other", message="x", message_id="mine-1")
    refused(store, DuplicateMessage, enqueue, new)


def test_a_duplicate_among_many_keeps_all_out(store: Store) -> None:
    lane(store)
    send(store, message_id="mine-1")
    new = NewMessage(agent=AGENT, message="new")
    refused(store, DuplicateMessage, enqueue_many, [new, OWN, new])


def test_the_same_id_twice_in_one_call_is_refused_before_anything_is_written(
    store: Store,
) -> None:
    lane(store)
    refused(store, DuplicateMessage, enqueue_many, [OWN, OWN])


@pytest.mark.parametrize(
    ("channel", "from_agent", "prefix"),
    [("slack", None, "slack"), ("api", "coder", "internal"), ("chatroom", "coder", "chat")],
)
def test_a_generated_id_is_its_prefix_and_eight_characters(
    store: Store, channel: str, from_agent: str | None, prefix: str
) -> None:
    lane(store)
    sent = send(store, channel=channel, from_agent=from_agent)
    assert re.fullmatch(f"{prefix}_[0-9a-z]{{8}}", sent)


def _script(*texts: str) -> Ids:
    left: Iterator[str] = iter(texts)
    return Ids(lambda: next(left))


@pytest.mark.parametrize("archived", [False, True])
def test_a_generated_id_that_exists_gets_a_new_one_and_is_no_duplicate(
    stores: Stores, settings: Settings, clock: FakeClock, store: Store, archived: bool
) -> None:
    lane(store)
    ids = _script("aaaaaaaa", "aaaaaaaa", "aaaaaaaa", "bbbbbbbb")
    with stores.opened(settings, clock, ids) as scripted:
        first = send(scripted, "first")
        if archived:
            with scripted.write() as tx:
                cancel(tx, first)
            to_archive(scripted, first)
        second = send(scripted, "second")
        assert (first, second) == ("api_aaaaaaaa", "api_bbbbbbbb")
        assert message(scripted, second)["conversation_id"] == second
        assert message(scripted, second)["message"] == "second"


def test_two_generated_ids_that_meet_in_one_call_both_arrive(
    stores: Stores, settings: Settings, clock: FakeClock, store: Store
) -> None:
    lane(store)
    ids = _script("aaaaaaaa", "aaaaaaaa", "bbbbbbbb")
    with stores.opened(settings, clock, ids) as scripted, scripted.write() as tx:
        news = [NewMessage(agent=AGENT, message=text) for text in ("one", "two")]
        accepted = enqueue_many(tx, news)
        assert [each.fresh for each in accepted] == [True, True]
        assert [each.message_id for each in accepted] == ["api_aaaaaaaa", "api_bbbbbbbb"]
    assert [row["message"] for row in rows(store, MESSAGES)] == ["one", "two"]


def test_a_collision_keeps_the_conversation_that_was_given(
    stores: Stores, settings: Settings, clock: FakeClock, store: Store
) -> None:
    lane(store)
    with stores.opened(settings, clock, _script("aaaaaaaa", "aaaaaaaa", "bbbbbbbb")) as scripted:
        send(scripted)
        sent = send(scripted, conversation_id="api_root0000", parent_id="api_root0000")
        assert message(scripted, sent)["conversation_id"] == "api_root0000"
