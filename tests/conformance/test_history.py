"""History and attempts: what was said, and what each run was."""

from __future__ import annotations

import pytest

from bullpen.core.answers.complete import fail
from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import MINUTE, SECOND
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
from bullpen.core.models import AGENT_MESSAGES, ATTEMPTS
from bullpen.core.queue.fail import release
from bullpen.core.queue.manage import CANCEL_WAIT_MS, cancel
from bullpen.core.store.base import Store
from tests.conformance.verbs import AGENT, do, done, failed, lane, rows, send, take
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
        (AGENT, "assistant", "slack", AGENT, "first answer"),
        (AGENT, "assistant", "slack", AGENT, "second answer"),
        (AGENT, "assistant", "internal", AGENT, "@reviewer: check"),
        (AGENT, "assistant", ROOM, AGENT, "hello room"),
    ]
    history = rows(store, AGENT_MESSAGES)
    assert {row["created_at"] for row in history} == {START + 5}
    assert [row["message_id"] for row in history[:2]] == [first, second]
    assert {row["message_id"] for row in history[3:]} == {first}


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


def test_only_a_finished_run_makes_history_and_only_once(store: Store) -> None:
    lane(store)
    send(store, "one")
    failed(store, take(store).token, retry_after=0)
    do(store, release, take(store).token)
    assert _said(store) == []
    done(store, take(store).token)
    assert [content for *_, content in _said(store)] == ["one", "done"]


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
