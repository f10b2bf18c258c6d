"""What reports need to know is on the row of each run and in the events, without a join."""

from __future__ import annotations

import json
from typing import Any

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import MessageEnqueued
from bullpen.core.events.message import MessageDead
from bullpen.core.events.response import ResponseDelivered
from bullpen.core.events.vocabulary import read_event
from bullpen.core.message import ErrorKind, NewMessage, Outcome, ReplyTo, RoomPost
from bullpen.core.models import ATTEMPTS, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Overflow
from bullpen.core.queue.manage import cancel, resume, retry
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    Row,
    do,
    done,
    events,
    failed,
    lane,
    message,
    rows,
    send,
    take,
    to_archive,
)
from tests.stores import START, FakeClock

ADA: dict[str, Any] = {"channel": "slack", "sender": "Ada", "sender_id": "U1"}


def _attempts(store: Store) -> list[Row]:
    return rows(store, ATTEMPTS)


def _numbers(store: Store) -> list[tuple[str, int, int | None]]:
    """Of each run how it ended, its number and its back-off."""
    return [(each["outcome"], each["attempt"], each["wait"]) for each in _attempts(store)]


def _data(store: Store, kind: str) -> list[dict[str, object]]:
    return [json.loads(each["data"]) for each in events(store, kind)]


def test_a_run_says_for_whom_it_was_and_since_when_it_could_start(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, delay=HOUR, **ADA)
    clock.advance(HOUR + 7)
    done(store, take(store).token)
    (run,) = _attempts(store)
    assert (run["sender"], run["sender_id"], run["from_agent"]) == ("Ada", "U1", None)
    assert (run["enqueued_at"], run["available_at"]) == (START, START + HOUR)
    assert (run["claimed_at"], run["conversation_at"]) == (START + HOUR + 7, START)
    assert (run["attempt"], run["dead"], run["wait"]) == (1, 0, None)


def test_every_run_has_the_next_number_however_it_ended(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=5 * MINUTE)
    clock.advance(5 * MINUTE)
    failed(store, take(store).token, ErrorKind.CRASH)
    do(store, release, take(store).token)
    failed(store, take(store).token, ErrorKind.NEEDS_PERSON)
    do(store, resume, sent)
    failed(store, take(store).token, ErrorKind.PERMANENT)
    clock.advance(HOUR)
    do(store, retry, sent)
    done(store, take(store).token)
    assert _numbers(store) == [
        ("failed", 1, 5 * MINUTE),
        ("crashed", 2, None),
        ("released", 3, None),
        ("failed", 4, None),
        ("failed", 5, None),
        ("completed", 6, None),
    ]
    first, second, *_, last = _attempts(store)
    assert (first["available_at"], second["available_at"]) == (START, START + 5 * MINUTE)
    assert last["available_at"] == START + 5 * MINUTE + HOUR
    assert {each["conversation_at"] for each in _attempts(store)} == {START}
    assert [each["dead"] for each in _attempts(store)] == [0, 0, 0, 0, 1, 0]
    assert (message(store, sent)["runs"], message(store, sent)["retry_count"]) == (6, 0)


def test_a_cancelled_run_counts_and_those_beside_it_too(store: Store) -> None:
    lane(store)
    first, second = send(store, "one", **ADA), send(store, "two", **ADA)
    take(store)
    do(store, cancel, first)
    assert _numbers(store) == [("cancelled", 1, None)]
    assert [message(store, each)["runs"] for each in (first, second)] == [1, 1]


def test_a_run_says_how_many_messages_it_made_dead(store: Store) -> None:
    """A batch that fails kills none: each of its messages gets a run of its own."""
    lane(store)
    for text in ("one", "two", "three"):
        send(store, text, **ADA)
    failed(store, take(store).token, ErrorKind.PERMANENT)
    for _ in range(3):
        failed(store, take(store).token, ErrorKind.PERMANENT)
    found = [(each["messages"], each["attempt"], each["dead"]) for each in _attempts(store)]
    assert found == [(3, 1, 0), (1, 2, 1), (1, 2, 1), (1, 2, 1)]
    assert sum(each["dead"] for each in _attempts(store)) == len(events(store, "message_dead"))


def test_a_heartbeat_that_fails_is_dead_at_once(store: Store) -> None:
    lane(store)
    send(store, channel="heartbeat", sender="bullpen", origin="heartbeat")
    failed(store, take(store).token)
    assert _numbers(store) == [("failed", 1, None)]
    assert [each["dead"] for each in _attempts(store)] == [1]


def test_a_rate_limit_delays_the_lane_and_not_the_message(store: Store) -> None:
    lane(store)
    send(store)
    failed(store, take(store).token, ErrorKind.RATE_LIMIT, retry_after=MINUTE)
    assert _numbers(store) == [("failed", 1, None)]


def test_what_agents_write_to_each_other_has_the_beginning_of_its_conversation(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    lane(store, "reviewer")
    lane(store, "tester")
    root = send(store, "build it", **ADA)
    clock.advance(HOUR)
    done(store, take(store).token, Outcome(handoffs=(NewMessage(agent="reviewer", message="r"),)))
    clock.advance(HOUR)
    posts = (RoomPost(team_id="dev", message="look", to=("tester",)),)
    handoffs = (NewMessage(agent=AGENT, message="again"),)
    done(store, take(store).token, Outcome(handoffs=handoffs, room_posts=posts))
    clock.advance(HOUR)
    done(store, take(store, "tester").token)
    done(store, take(store).token)
    found = {
        (each["agent"], each["hop"]): (each["from_agent"], each["conversation_at"], each["sender"])
        for each in _attempts(store)
    }
    assert found == {
        (AGENT, 0): (None, START, "Ada"),
        ("reviewer", 1): (AGENT, START, "Ada"),
        ("tester", 2): ("reviewer", START, "reviewer"),
        (AGENT, 2): ("reviewer", START, "Ada"),
    }
    assert {each["conversation_id"] for each in _attempts(store)} == {root}
    assert {each["conversation_at"] for each in rows(store, MESSAGES)} == {START}
    assert [each["created_at"] - START for each in rows(store, MESSAGES)] == [
        *(0, HOUR, 2 * HOUR, 2 * HOUR)
    ]


def test_an_archived_message_keeps_its_runs_and_the_beginning(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, ErrorKind.CRASH)
    done(store, take(store).token)
    to_archive(store, sent)
    (archived,) = rows(store, MESSAGES_ARCHIVE)
    assert (archived["runs"], archived["conversation_at"]) == (2, START)


def test_the_event_of_a_new_message_says_whose_it_is(store: Store, clock: FakeClock) -> None:
    lane(store)
    lane(store, "reviewer")
    root = send(store, delay=MINUTE, team_id="dev", reply_to=ReplyTo("C1"), **ADA)
    clock.advance(MINUTE)
    handoff = NewMessage(agent="reviewer", message="check", delay=HOUR)
    done(store, take(store).token, Outcome(handoffs=(handoff,)))
    first, second = _data(store, "message_enqueued")
    assert first == {
        **ADA,
        "hop": 0,
        "team_id": "dev",
        "available_at": START + MINUTE,
    }
    assert second == {
        **ADA,
        "hop": 1,
        "from_agent": AGENT,
        "parent_id": root,
        "available_at": START + MINUTE + HOUR,
    }


def test_the_event_of_a_dead_message_says_whose_it_was_and_why(store: Store) -> None:
    lane(store, policy=LanePolicy(max_depth=1, overflow=Overflow.DROP_OLDEST))
    send(store, "one", team_id="dev", **ADA)
    send(store, "two", team_id="dev", **ADA)
    failed(store, take(store).token, ErrorKind.PERMANENT, error="no file 17")
    overflowed, failing = _data(store, "message_dead")
    for each in (overflowed, failing):
        assert (each["channel"], each["team_id"], each["sender_id"]) == ("slack", "dev", "U1")
    (run,) = _attempts(store)
    assert failing["fingerprint"] == run["fingerprint"]
    assert overflowed["fingerprint"]
    assert overflowed["fingerprint"] != failing["fingerprint"]


def test_events_from_before_these_fields_are_still_read() -> None:
    about = MessageRef("coder", "c", "m")
    old: dict[type[object], dict[str, object]] = {
        MessageEnqueued: {},
        MessageDead: {"kind": "permanent", "error": "x"},
        ResponseDelivered: {"channel": "slack", "error": None},
    }
    for kind, data in old.items():
        event = read_event(str(getattr(kind, "type", "")), about, data)
        assert isinstance(event, kind)
        assert event.data == data
    enqueued = read_event("message_enqueued", about, {})
    assert isinstance(enqueued, MessageEnqueued)
    assert (enqueued.channel, enqueued.available_at) == (None, None)
