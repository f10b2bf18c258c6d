"""decide: what becomes of a message and its lane, by the kind of failure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.message import HEARTBEAT, ErrorKind, Failure, Message
from bullpen.core.queue.disposition import (
    DelayLane,
    Disposition,
    FailurePolicy,
    PauseLane,
    decide,
)
from bullpen.core.retry import RetryPolicy
from bullpen.core.states import MESSAGE_STATES, MessageState

PENDING, HELD, DEAD = MessageState.PENDING, MessageState.HELD, MessageState.DEAD

POLICY = FailurePolicy(
    retry=RetryPolicy(base=2 * SECOND, longest=5 * MINUTE, random=lambda: 0.75),
    max_attempts=3,
    max_crashes=2,
)

MESSAGE = Message(
    id=1,
    message_id="cli_1",
    channel="cli",
    sender="Ada",
    sender_id=None,
    message="hello",
    agent="coder",
    from_agent=None,
    files=None,
    retry_count=0,
    crash_count=0,
    conversation_id="cli_1",
    parent_id=None,
    hop=0,
    team_id=None,
    reply_to=None,
    priority=2,
    deadline=None,
    payload=None,
    schema=None,
    written_at=None,
    created_at=0,
    available_at=0,
    runs=1,
    conversation_at=None,
)


def outcome(
    kind: ErrorKind, *, retries: int = 0, crashes: int = 0, retry_after: int | None = None
) -> Disposition:
    message = replace(MESSAGE, retry_count=retries, crash_count=crashes)
    return decide(message, Failure(kind=kind, error="broken", retry_after=retry_after), POLICY)


def expected(
    kind: ErrorKind,
    state: MessageState,
    *,
    wait: int = 0,
    retries: int = 0,
    crashes: int = 0,
    lane: PauseLane | DelayLane | None = None,
) -> Disposition:
    return Disposition(
        state=state,
        wait=wait,
        retries=retries,
        crashes=crashes,
        error="broken",
        error_kind=kind,
        lane=lane,
    )


K = ErrorKind


@pytest.mark.parametrize(
    ("decided", "wanted"),
    [
        (outcome(K.RETRYABLE), expected(K.RETRYABLE, PENDING, wait=2 * SECOND, retries=1)),
        (
            outcome(K.RETRYABLE, retries=1),
            expected(K.RETRYABLE, PENDING, wait=3 * SECOND, retries=1),
        ),
        (outcome(K.RETRYABLE, retries=2), expected(K.RETRYABLE, DEAD, retries=1)),
        (outcome(K.RETRYABLE, retries=9), expected(K.RETRYABLE, DEAD, retries=1)),
        # Crashes do not count as failures of the message itself, nor failures as crashes.
        (
            outcome(K.RETRYABLE, crashes=9),
            expected(K.RETRYABLE, PENDING, wait=2 * SECOND, retries=1),
        ),
        (
            outcome(K.RETRYABLE, retry_after=90_000),
            expected(K.RETRYABLE, PENDING, wait=90_000, retries=1),
        ),
        (outcome(K.RETRYABLE, retry_after=-1), expected(K.RETRYABLE, PENDING, retries=1)),
        (
            outcome(K.RETRYABLE, retries=2, retry_after=90_000),
            expected(K.RETRYABLE, DEAD, retries=1),
        ),
        (outcome(K.CRASH), expected(K.CRASH, PENDING, crashes=1)),
        (outcome(K.CRASH, crashes=1), expected(K.CRASH, DEAD, crashes=1)),
        (outcome(K.CRASH, retries=9), expected(K.CRASH, PENDING, crashes=1)),
        (outcome(K.PERMANENT), expected(K.PERMANENT, DEAD, retries=1)),
        (outcome(K.NEEDS_PERSON), expected(K.NEEDS_PERSON, HELD)),
        (
            outcome(K.RATE_LIMIT, retries=9),
            expected(K.RATE_LIMIT, PENDING, lane=DelayLane(2 * SECOND)),
        ),
        (
            outcome(K.RATE_LIMIT, retry_after=90_000),
            expected(K.RATE_LIMIT, PENDING, lane=DelayLane(90_000)),
        ),
        (
            outcome(K.RATE_LIMIT, retry_after=0),
            expected(K.RATE_LIMIT, PENDING, lane=DelayLane(1)),
        ),
        (outcome(K.AUTH, retries=9), expected(K.AUTH, PENDING, lane=PauseLane("auth: broken"))),
        (outcome(K.QUOTA), expected(K.QUOTA, PENDING, lane=PauseLane("quota: broken"))),
        (outcome(K.SETUP), expected(K.SETUP, PENDING, lane=PauseLane("setup: broken"))),
    ],
)
def test_decide_says_what_becomes_of_the_message_and_of_its_lane(
    decided: Disposition, wanted: Disposition
) -> None:
    assert decided == wanted


@pytest.mark.parametrize("kind", ErrorKind)
def test_a_heartbeat_is_never_tried_again_and_does_to_the_lane_what_any_message_does(
    kind: ErrorKind,
) -> None:
    failure = Failure(kind=kind, error="broken", retry_after=5)
    ordinary = decide(MESSAGE, failure, POLICY)
    heartbeat = decide(replace(MESSAGE, channel=HEARTBEAT), failure, POLICY)
    assert heartbeat == replace(ordinary, state=DEAD, wait=0)


@given(
    kind=st.sampled_from(ErrorKind),
    channel=st.sampled_from(["cli", "chatroom", "internal", HEARTBEAT]),
    retries=st.integers(0, 100),
    crashes=st.integers(0, 100),
    retry_after=st.none() | st.integers(-(10**6), 10**9),
)
def test_every_disposition_is_a_move_that_a_claimed_message_can_make(
    kind: ErrorKind, channel: str, retries: int, crashes: int, retry_after: int | None
) -> None:
    message = replace(MESSAGE, channel=channel, retry_count=retries, crash_count=crashes)
    made = decide(message, Failure(kind=kind, error="x", retry_after=retry_after), POLICY)
    assert made.state in MESSAGE_STATES[MessageState.PROCESSING].moves_to
    assert made.wait == 0 or made.state is PENDING
    assert 0 <= made.retries + made.crashes <= 1
    if isinstance(made.lane, DelayLane):
        assert made.lane.wait >= 1


def test_a_long_error_is_kept_shortened_and_shown_shorter_still() -> None:
    made = decide(MESSAGE, Failure(kind=ErrorKind.AUTH, error="x" * 50_000), POLICY)
    assert made.error == "x" * 10_000
    assert made.lane == PauseLane("auth: " + "x" * 500)
