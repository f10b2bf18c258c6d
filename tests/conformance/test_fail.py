"""fail: what becomes of a message whose run did not succeed, by the kind of error."""

from __future__ import annotations

import pytest

from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.message import ErrorKind, Failure, ReplyTo, Usage
from bullpen.core.models import ATTEMPTS
from bullpen.core.queue.fail import fail_claim
from bullpen.core.queue.lanes import LanePolicy, pause_lane, resume_lane
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    failed,
    ids_of,
    in_order,
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

PAUSING = [ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SETUP]
UNBURNED = [ErrorKind.RATE_LIMIT, *PAUSING, ErrorKind.NEEDS_PERSON]


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_waits_are_random_between_two_seconds_and_a_ceiling_that_doubles_up_to_five_minutes(
    store: Store, clock: FakeClock, chance: float
) -> None:
    lane(store, policy=LanePolicy(max_attempts=20))
    store.chance = lambda: chance
    sent = send(store)
    for attempt in range(1, 13):
        failed(store, take(store).token)
        wait = message(store, sent)["available_at"] - clock.now()
        assert 2 * SECOND <= wait <= 5 * MINUTE
        ceiling = min(5 * MINUTE, 2**attempt * SECOND)
        assert 0.9 * chance * ceiling <= wait <= ceiling
        clock.advance(wait - 1)
        assert try_claim(store) is None
        clock.advance(1)


@pytest.mark.parametrize("retry_after", [1, 90_000, 2 * HOUR])
def test_the_provider_says_how_long_to_wait(
    store: Store, clock: FakeClock, retry_after: int
) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=retry_after)
    assert message(store, sent)["available_at"] == START + retry_after
    clock.advance(retry_after - 1)
    assert try_claim(store) is None
    clock.advance(1)
    assert ids_of(take(store)) == [sent]


def test_a_failed_message_says_what_went_wrong(store: Store) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, error="no such model")
    row = message(store, sent)
    assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 1, 0)
    assert (row["error_kind"], row["last_error"]) == ("retryable", "no such model")
    (event,) = events(store, "message_failed")
    assert event["message_id"] == sent
    assert "no such model" in event["data"]


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_message_is_dead_at_the_lanes_number_of_attempts_and_its_person_is_told_once(
    store: Store, clock: FakeClock, most: int
) -> None:
    lane(store, policy=LanePolicy(max_attempts=most))
    where = ReplyTo("C1")
    sent = send(store, channel="slack", sender="Ada", sender_id="U1", reply_to=where)
    for attempt in range(most):
        assert status(store, sent) == "pending"
        assert responses(store) == []
        assert message(store, sent)["retry_count"] == attempt
        failed(store, take(store).token, error="always broken")
        clock.advance(5 * MINUTE)
    row = message(store, sent)
    assert (row["status"], row["retry_count"], row["last_error"]) == ("dead", most, "always broken")
    (notice,) = responses(store)
    assert (notice["channel"], notice["sender_id"]) == ("slack", "U1")
    assert notice["reply_to"] == str(where)
    assert "always broken" in notice["message"]
    assert sent in notice["message"]
    (death,) = events(store, "message_dead")
    assert death["message_id"] == sent
    assert len(events(store, "message_failed")) == most - 1
    assert try_claim(store) is None


def test_the_setting_gives_a_new_lane_its_number_of_attempts(store: Store) -> None:
    lane(store)
    assert lane_row(store)["max_attempts"] == store.settings.max_attempts == 5


def test_a_permanent_error_kills_at_once(store: Store) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, ErrorKind.PERMANENT)
    assert (status(store, sent), message(store, sent)["error_kind"]) == ("dead", "permanent")
    assert len(responses(store)) == len(events(store, "message_dead")) == 1


def test_a_dead_room_post_is_told_to_nobody(store: Store) -> None:
    lane(store)
    send(store, channel="chatroom", from_agent="x", sender="x")
    failed(store, take(store).token, ErrorKind.PERMANENT)
    assert responses(store) == []
    assert len(events(store, "message_dead")) == 1


@pytest.mark.timeout(90)  # in the transaction: who takes long here keeps everybody waiting
def test_a_very_long_error_still_ends_the_run(store: Store) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, ErrorKind.PERMANENT, "x" * 500_000)
    assert len(message(store, sent)["last_error"]) == 10_000
    assert len(responses(store)[0]["message"]) < 2_000


@pytest.mark.parametrize("kind", UNBURNED)
def test_what_is_not_the_messages_fault_burns_no_retry(store: Store, kind: ErrorKind) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, kind, "the provider says no")
    row = message(store, sent)
    assert (row["retry_count"], row["crash_count"], row["error_kind"]) == (0, 0, kind.value)
    assert row["last_error"] == "the provider says no"
    told = kind is not ErrorKind.RATE_LIMIT
    assert [each["channel"] for each in responses(store)] == ["cli"] * told


def test_a_rate_limit_makes_the_whole_lane_wait(store: Store, clock: FakeClock) -> None:
    lane(store)
    lane(store, "other")
    send(store, "one", sender="a")
    found = take(store)
    send(store, "two", sender="b")
    failed(store, found.token, ErrorKind.RATE_LIMIT, retry_after=MINUTE)
    send(store, "three", sender="c")
    send(store, "elsewhere", "other")
    clock.advance(MINUTE - 1)
    assert texts_of(take(store)) == ["elsewhere"]
    assert try_claim(store) is None
    assert lane_row(store)["state"] == "active"
    clock.advance(1)
    assert in_order(store, AGENT) == ["one", "two", "three"]


def test_a_rate_limit_without_a_time_waits_as_after_a_first_failure(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    store.chance = lambda: 0.999
    send(store)
    failed(store, take(store).token, ErrorKind.RATE_LIMIT)
    assert try_claim(store) is None
    clock.advance(2 * SECOND)
    take(store)


def test_a_rate_limited_message_is_tried_as_often_as_it_takes(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store)
    for _ in range(20):
        failed(store, take(store).token, ErrorKind.RATE_LIMIT, retry_after=SECOND)
        clock.advance(SECOND)
    assert message(store, sent)["retry_count"] == 0
    done(store, take(store).token)


def test_a_rate_limit_outlasts_pause_and_resume(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store)
    failed(store, take(store).token, ErrorKind.RATE_LIMIT, retry_after=MINUTE)
    do(store, pause_lane, AGENT, "lunch")
    do(store, resume_lane, AGENT)
    assert try_claim(store) is None
    clock.advance(MINUTE)
    take(store)


@pytest.mark.parametrize("kind", PAUSING)
def test_what_no_retry_mends_pauses_the_lane_and_tells_the_owner_why(
    store: Store, kind: ErrorKind
) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, kind, "log in again")
    row = lane_row(store)
    assert row["state"] == "paused"
    assert kind.value in row["reason"]
    assert "log in again" in row["reason"]
    (event,) = events(store, "lane_paused")
    assert event["agent"] == AGENT
    assert try_claim(store) is None
    (told,) = responses(store)
    assert (told["channel"], told["sender"]) == ("cli", "owner")
    assert "log in again" in told["message"]
    assert f"bullpen agent resume {AGENT}" in told["message"]
    do(store, resume_lane, AGENT)
    assert ids_of(take(store)) == [sent]


REMEDIES = [
    (ErrorKind.SETUP, "claude", "Fix this, then run: "),
    (ErrorKind.AUTH, "claude", "Log in (run `claude`, then /login; or run `bullpen config set "),
    (ErrorKind.AUTH, "custom:local", "Run `bullpen provider set custom:local --key`, then run: "),
    (ErrorKind.AUTH, "unknown", "Log in, then run: "),
    (ErrorKind.QUOTA, "codex", "Add credit, or wait until the limit ends, then run: "),
]


def test_the_notice_of_a_pause_has_the_commands_that_end_it_in_order(
    store: Store, subtests: pytest.Subtests
) -> None:
    for number, (kind, provider, remedy) in enumerate(REMEDIES):
        with subtests.test(kind=kind, provider=provider):
            agent = f"agent{number}"
            lane(store, agent)
            send(store, agent=agent)
            failure = Failure(kind=kind, error="not now", usage=Usage(provider=provider))
            do(store, fail_claim, take(store).token, failure)
            first, second = responses(store)[-1]["message"].splitlines()
            assert first == f"@{agent} is paused: not now"
            assert second.startswith(remedy)
            assert second.endswith(f", then run: bullpen agent resume {agent}")


def test_a_message_that_needs_a_person_is_held(store: Store) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, ErrorKind.NEEDS_PERSON, "may I delete it?")
    assert (status(store, sent), lane_row(store)["pending"]) == ("held", 0)
    (event,) = events(store, "message_held")
    assert event["message_id"] == sent
    assert try_claim(store) is None
    (told,) = responses(store)
    assert "may I delete it?" in told["message"]
    assert f"bullpen queue resume {sent}" in told["message"]


def test_crashes_count_apart_and_the_last_allowed_one_kills(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=0)
    for crash in range(store.settings.max_crashes):
        row = message(store, sent)
        assert (row["status"], row["crash_count"], row["retry_count"]) == ("pending", crash, 1)
        take(store)
        clock.advance(MINUTE)
        do(store, expire_leases)
    row = message(store, sent)
    assert (row["status"], row["crash_count"], row["retry_count"]) == ("dead", 5, 1)
    assert row["error_kind"] == "crash"
    assert "worker-1" in row["last_error"]
    assert len(responses(store)) == len(events(store, "message_dead")) == 1
    outcomes = [attempt["outcome"] for attempt in rows(store, ATTEMPTS)]
    assert outcomes == ["failed", *["crashed"] * 5]


def test_a_message_in_back_off_lets_later_ones_pass_and_then_takes_its_old_place(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, "first", sender="a")
    failed(store, take(store).token, retry_after=MINUTE)
    clock.advance(SECOND)
    for text in ("second", "third"):
        send(store, text, sender=text)
    found = take(store)
    assert texts_of(found) == ["second"]
    done(store, found.token)
    clock.advance(MINUTE)
    assert in_order(store) == ["first", "third"]


def test_a_failed_batch_is_judged_message_by_message(store: Store) -> None:
    lane(store, policy=LanePolicy(max_attempts=2))
    old, young = send(store, "old"), send(store, "young")
    found = take(store)
    assert ids_of(found) == [old, young]
    failed(store, found.token, retry_after=0)
    again = take(store)
    assert ids_of(again) == [old]
    failed(store, again.token, retry_after=0)
    assert (status(store, old), status(store, young)) == ("dead", "pending")
    assert [row["message_id"] for row in responses(store)] == [old]
    assert ids_of(take(store)) == [young]


def test_each_message_of_a_batch_waits_for_a_time_of_its_own(store: Store) -> None:
    lane(store, policy=LanePolicy(max_attempts=9))
    chances = iter([0.9, 0.95])
    store.chance = lambda: next(chances)
    sent = [send(store, text) for text in "ab"]
    failed(store, take(store).token)
    waits = [message(store, each)["available_at"] - START for each in sent]
    assert len(set(waits)) == 2 or max(waits) <= 2 * SECOND
