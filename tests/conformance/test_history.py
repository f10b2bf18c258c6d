"""History and attempts: what was said, and what each run was."""

from __future__ import annotations

import pytest

from bullpen.core.answers.complete import fail
from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import LaneFull
from bullpen.core.ids import SYSTEM_AUTHOR
from bullpen.core.message import (
    ROOM,
    Answer,
    ErrorKind,
    Failure,
    NewMessage,
    Outcome,
    ReplyTo,
    RoomPost,
    Usage,
)
from bullpen.core.models import AGENT_MESSAGES, ATTEMPTS, RESPONSES
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Overflow, pause_lane
from bullpen.core.queue.manage import CANCEL_WAIT_MS, cancel, drop
from bullpen.core.store.base import Store
from tests.conformance.verbs import AGENT, do, done, failed, lane, rows, send, take, try_claim
from tests.stores import START, FakeClock

USAGE = Usage(provider="claude", model="m-1", input_tokens=10, output_tokens=20, cost=0.25)


def _said(store: Store) -> list[tuple[str, str, str, str, str]]:
    return [
        (row["agent_id"], row["role"], row["channel"], row["sender"], row["content"])
        for row in rows(store, AGENT_MESSAGES)
    ]


def test_what_was_heard_and_what_was_said_is_kept_in_order(store: Store, clock: FakeClock) -> None:
    lane(store)
    lane(store, "reviewer")
    first = send(store, "one", channel="slack", sender="Ada")
    second = send(store, "two", channel="slack", sender="Ada")
    send(store, "post", channel=ROOM, from_agent="reviewer", sender="reviewer")
    found = take(store)
    clock.advance(5)
    late = send(store, "three", channel="slack", sender="Ada")
    outcome = Outcome(
        answers=(Answer(message="first answer"), Answer(message="second answer")),
        handoffs=(NewMessage(agent="reviewer", message="check"),),
        room_posts=(RoomPost(team_id="dev", message="hello room", to=("reviewer",)),),
    )
    done(store, found.token, outcome)
    assert _said(store) == [
        (AGENT, "user", "slack", "Ada", "one"),
        (AGENT, "user", "slack", "Ada", "two"),
        (AGENT, "user", ROOM, "reviewer", "post"),
        (AGENT, "user", "slack", "Ada", "three"),
        (AGENT, "assistant", "slack", AGENT, "first answer"),
        (AGENT, "assistant", "slack", AGENT, "second answer"),
        (AGENT, "assistant", "internal", AGENT, "@reviewer: check"),
        (AGENT, "assistant", ROOM, AGENT, "hello room"),
        ("reviewer", "user", "slack", AGENT, "check"),
        ("reviewer", "user", ROOM, AGENT, "hello room"),
    ]
    history = rows(store, AGENT_MESSAGES)
    assert [row["created_at"] for row in history[:3]] == [START] * 3  # when it was said
    assert {row["created_at"] for row in history[3:]} == {START + 5}
    assert [row["message_id"] for row in history[:2]] == [first, second]
    assert history[3]["message_id"] == late
    assert {row["message_id"] for row in history[4:8]} == {first}


def test_a_teammates_message_is_heard_from_the_teammate(store: Store) -> None:
    lane(store)
    lane(store, "reviewer")
    send(store, "build", sender="Ada", reply_to=ReplyTo("C1"))
    handoff = NewMessage(agent="reviewer", message="check")
    done(store, take(store).token, Outcome(handoffs=(handoff,)))
    done(store, take(store).token, Outcome(answers=(Answer(message="fine"),)))
    assert _said(store)[-2:] == [
        ("reviewer", "user", "api", AGENT, "check"),
        ("reviewer", "assistant", "api", "reviewer", "fine"),
    ]


def _entries(store: Store, message_id: str) -> list[tuple[str, str, str, int]]:
    return [
        (row["role"], row["sender"], row["content"], row["created_at"])
        for row in rows(store, AGENT_MESSAGES)
        if row["message_id"] == message_id
    ]


def _let_die(store: Store, sent: str) -> None:
    failed(store, take(store).token, error="no disk", kind=ErrorKind.PERMANENT)


def _let_retry(store: Store, sent: str) -> None:
    failed(store, take(store).token, retry_after=0)
    do(store, release, take(store).token)
    take(store)


def _let_hold(store: Store, sent: str) -> None:
    failed(store, take(store).token, kind=ErrorKind.NEEDS_PERSON)


def _let_run(store: Store, sent: str) -> None:
    take(store)


def _let_cancel(store: Store, sent: str) -> None:
    take(store)
    do(store, cancel, sent)


def _let_drop(store: Store, sent: str) -> None:
    do(store, cancel, sent)
    do(store, drop, sent)


def _let_expire(store: Store, sent: str) -> None:
    assert try_claim(store) is None


def test_what_was_said_is_in_the_history_once_whatever_becomes_of_it(
    store: Store, clock: FakeClock, subtests: pytest.Subtests
) -> None:
    fates = (_let_run, _let_retry, _let_hold, _let_cancel, _let_drop, _let_expire, _let_die)
    for number, fate in enumerate(fates):
        agent = f"agent{number}"
        with subtests.test(fate=fate.__name__):
            lane(store, agent)
            deadline = clock.now() + MINUTE if fate is _let_expire else None
            sent = send(store, "hello", agent=agent, sender="Ada", deadline=deadline)
            said = ("user", "Ada", "hello", clock.now())
            assert _entries(store, sent) == [said]
            clock.advance(MINUTE)
            fate(store, sent)
            assert _entries(store, sent)[:1] == [said]
            assert [role for role, *_ in _entries(store, sent)].count("user") == 1
        with store.write() as tx:
            pause_lane(tx, agent, "its part is over")


def test_an_apology_is_in_the_history_as_what_the_person_was_told(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store, "hello", channel="slack", sender="Ada")
    clock.advance(MINUTE)
    failed(store, take(store).token, error="no disk", kind=ErrorKind.PERMANENT)
    (told,) = rows(store, RESPONSES)
    assert "no disk" in told["message"]
    assert _entries(store, sent)[1:] == [
        ("assistant", SYSTEM_AUTHOR, told["message"], START + MINUTE)
    ]


def test_a_message_that_its_lane_drops_stays_in_the_history(store: Store) -> None:
    lane(store, policy=LanePolicy(max_depth=1, overflow=Overflow.DROP_OLDEST))
    first, second = send(store, "one"), send(store, "two")
    assert [role for role, *_ in _entries(store, first)] == ["user", "assistant"]
    assert [role for role, *_ in _entries(store, second)] == ["user"]


def test_a_message_that_is_refused_or_delivered_again_is_not_in_the_history(store: Store) -> None:
    lane(store, policy=LanePolicy(max_depth=1))
    send(store, "one", channel="slack", event_ids=("e1",))
    send(store, "one", channel="slack", event_ids=("e1",))
    with pytest.raises(LaneFull):
        send(store, "two")
    assert [content for *_, content in _said(store)] == ["one"]


def test_an_attempt_says_what_the_run_was(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, "one", channel="slack", sender="Ada", team_id="dev")
    send(store, "two", channel="slack", sender="Ada")
    clock.advance(SECOND)
    found = take(store)
    clock.advance(SECOND)
    usage = Usage(
        provider="claude",
        model="m-1",
        input_tokens=10,
        output_tokens=20,
        cost=0.25,
        started_at=clock.now(),
    )
    clock.advance(SECOND)
    done(store, found.token, Outcome(usage=usage))
    (attempt,) = rows(store, ATTEMPTS)
    assert (attempt["message_id"], attempt["messages"]) == (sent, 2)
    assert (attempt["agent"], attempt["worker"]) == (AGENT, "worker-1")
    assert (attempt["outcome"], attempt["error_kind"], attempt["error"]) == (
        "completed",
        None,
        None,
    )
    assert (attempt["provider"], attempt["model"]) == ("claude", "m-1")
    assert (attempt["input_tokens"], attempt["output_tokens"], attempt["cost"]) == (10, 20, 0.25)
    assert (attempt["conversation_id"], attempt["hop"], attempt["team_id"]) == (sent, 0, "dev")
    assert (attempt["channel"], attempt["retry_count"]) == ("slack", 0)
    times = [attempt[name] for name in ("enqueued_at", "claimed_at", "started_at", "finished_at")]
    assert times == [START, START + SECOND, START + 2 * SECOND, START + 3 * SECOND]


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_a_failed_attempt_says_why_and_what_it_cost(store: Store, kind: ErrorKind) -> None:
    lane(store)
    send(store)
    found = take(store)
    do(store, fail, found.token, Failure(kind=kind, error="it broke", usage=USAGE))
    (attempt,) = rows(store, ATTEMPTS)
    expected = "crashed" if kind is ErrorKind.CRASH else "failed"
    assert (attempt["outcome"], attempt["error_kind"]) == (expected, kind.value)
    assert (attempt["error"], attempt["cost"]) == ("it broke", 0.25)
    assert attempt["fingerprint"]


def test_errors_that_differ_in_numbers_and_ids_have_one_fingerprint(store: Store) -> None:
    lane(store)
    send(store)
    errors = [
        "timeout after 30 s in api_a1b2c3d4",
        "Timeout after 1200 s in slack_zzzz9999",
        "no such model",
    ]
    for error in errors:
        failed(store, take(store).token, error=error, retry_after=0)
    first, second, third = (row["fingerprint"] for row in rows(store, ATTEMPTS))
    assert first == second != third


def test_every_claim_that_ends_leaves_one_attempt(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=0)
    do(store, release, take(store).token)
    take(store)
    clock.advance(MINUTE)
    do(store, expire_leases)
    take(store)
    do(store, cancel, sent)
    clock.advance(CANCEL_WAIT_MS)
    send(store)
    done(store, take(store).token)
    attempts = rows(store, ATTEMPTS)
    outcomes = [row["outcome"] for row in attempts]
    assert outcomes == ["failed", "released", "crashed", "cancelled", "completed"]
    assert [row["retry_count"] for row in attempts] == [0, 1, 1, 1, 0]
