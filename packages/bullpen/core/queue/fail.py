"""A claim that ends without an answer: what becomes of its messages and its lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sqlalchemy import ColumnElement, bindparam, func, null, select, update

from bullpen.core.backoff import backoff
from bullpen.core.clock import SECOND
from bullpen.core.events.log import EventType, append_message_event
from bullpen.core.message import (
    HEARTBEAT,
    ErrorKind,
    Failure,
    Message,
    MessageTuple,
    message_columns,
)
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.outbox.notices import notify_owner
from bullpen.core.queue.attempts import AttemptOutcome, EndedClaim, end_claim, record_attempt
from bullpen.core.queue.dead_letters import notify_dead
from bullpen.core.queue.lanes import delay_lane, lock_claimed_lane, pause_lane, refresh_lane
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c


def _claimed() -> tuple[ColumnElement[bool], ...]:
    return (
        M.id == bindparam("message"),
        M.status == const(MessageState.PROCESSING.value),
        M.claim_token == bindparam("token"),
    )


SELECT_CLAIMED: Statement[MessageTuple] = Statement(
    lambda: select(*message_columns()).where(*_claimed())
)

APPLY_DISPOSITION: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(*_claimed())
        .values(
            status=bindparam("status"),
            retry_count=M.retry_count + bindparam("failed"),
            crash_count=M.crash_count + bindparam("crashed"),
            last_error=func.coalesce(bindparam("error"), M.last_error),
            error_kind=func.coalesce(bindparam("kind"), M.error_kind),
            ready=bindparam("is_ready"),
            available_at=bindparam("at"),
            claim_token=null(),
            updated_at=bindparam("now"),
        )
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposition:
    """What becomes of one message."""

    status: MessageState
    wait: int = 0
    """Milliseconds before it may be claimed again."""
    failed: int = 0
    crashed: int = 0
    kind: str | None = None
    error: str | None = None


def claimed_messages(tx: Transaction, run: EndedClaim) -> list[Message]:
    """The messages of this run, the primary first."""
    values = [{"message": each, "token": run.token} for each in run.ids]
    return [Message(*row) for row in tx.one_each(SELECT_CLAIMED, values) if row is not None]


def apply_dispositions(
    tx: Transaction, run: EndedClaim, fates: Sequence[tuple[Message, Disposition]]
) -> int:
    """Move each message to its fate; gives how many are waiting again."""
    tx.change_each(
        APPLY_DISPOSITION,
        [
            {
                "message": message.id,
                "token": run.token,
                "status": fate.status.value,
                "failed": fate.failed,
                "crashed": fate.crashed,
                "error": fate.error,
                "kind": fate.kind,
                "is_ready": fate.wait == 0,
                "at": tx.now + fate.wait,
                "now": tx.now,
            }
            for message, fate in fates
        ],
    )
    return sum(fate.status is MessageState.PENDING for _, fate in fates)


MAX_ERROR_CHARS = 10_000

PAUSING_KINDS = (ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SETUP)

PAUSED_NOTICE = (
    "@{agent} is paused: {error}\n"
    "Its messages wait. When this is mended: bullpen agent resume {agent}"
)

HELD_NOTICE = (
    "@{agent} needs a person: {error}\n"
    "To let it try again: bullpen queue let-go {id}\n"
    "To end it: bullpen queue cancel {id}"
)


def fail_claim(tx: Transaction, token: str, failure: Failure) -> list[Message]:
    """End this claim without an answer; gives its messages as they were.

    What else a failed run means to its heartbeat is the caller's: see `answers/fail.py`.
    """
    check_text(failure.error, tx.settings.message_bytes, "the error")
    lane = lock_claimed_lane(tx, token)
    run = end_claim(tx, token)
    messages = claimed_messages(tx, run)
    decide = _make_decider(tx, failure, lane.max_attempts)
    fates = [(message, _disposition(message, decide)) for message in messages]
    back = apply_dispositions(tx, run, fates)
    _apply_to_lane(tx, run, messages[0], lane.state, failure)
    refresh_lane(tx, run.agent, back)
    crashed = failure.kind is ErrorKind.CRASH
    outcome = AttemptOutcome.CRASHED if crashed else AttemptOutcome.FAILED
    record_attempt(tx, run, messages, outcome, failure.usage, failure)
    _append_events(tx, run, fates, failure)
    return messages


def _make_decider(
    tx: Transaction, failure: Failure, max_attempts: int
) -> Callable[[Message], Disposition]:
    kind = failure.kind
    error = failure.error[:MAX_ERROR_CHARS]

    def fate(status: MessageState, wait: int = 0, failed: int = 0, crashed: int = 0) -> Disposition:
        return Disposition(
            status=status, wait=wait, failed=failed, crashed=crashed, kind=kind.value, error=error
        )

    def again(message: Message) -> Disposition:
        attempt = message.retry_count + 1
        if attempt >= max_attempts:
            return fate(MessageState.DEAD, failed=1)
        return fate(MessageState.PENDING, _retry_delay(tx, attempt, failure.retry_after), failed=1)

    def after_crash(message: Message) -> Disposition:
        last = message.crash_count + 1 >= tx.settings.max_crashes
        return fate(MessageState.DEAD if last else MessageState.PENDING, crashed=1)

    match kind:
        case ErrorKind.RETRYABLE:
            return again
        case ErrorKind.CRASH:
            return after_crash
        case ErrorKind.PERMANENT:
            return lambda _: fate(MessageState.DEAD, failed=1)
        case ErrorKind.NEEDS_PERSON:
            return lambda _: fate(MessageState.HELD)
        case ErrorKind.RATE_LIMIT | ErrorKind.AUTH | ErrorKind.QUOTA | ErrorKind.SETUP:
            return lambda _: fate(MessageState.PENDING)
        case _:
            assert_never(kind)


def _disposition(message: Message, decide: Callable[[Message], Disposition]) -> Disposition:
    """A beat is not tried again: that would be one more than its rate allows."""
    fate = decide(message)
    return replace(fate, status=MessageState.DEAD, wait=0) if message.channel == HEARTBEAT else fate


def _retry_delay(tx: Transaction, attempt: int, retry_after: int | None) -> int:
    if retry_after is not None:
        return max(0, retry_after)
    base = tx.settings.retry_base_seconds * SECOND
    return backoff(attempt, base, tx.settings.retry_max_seconds * SECOND, tx.chance)


def _apply_to_lane(
    tx: Transaction, run: EndedClaim, primary: Message, state: str, failure: Failure
) -> None:
    if failure.kind is ErrorKind.RATE_LIMIT:
        delay_lane(tx, run.agent, tx.now + max(1, _retry_delay(tx, 1, failure.retry_after)))
    elif failure.kind in PAUSING_KINDS:
        pause_lane(tx, run.agent, f"{failure.kind}: {failure.error[:500]}")
        if state != LaneState.PAUSED:
            notify_owner(
                tx, primary, PAUSED_NOTICE.format(agent=run.agent, error=failure.error[:500])
            )
    elif failure.kind is ErrorKind.NEEDS_PERSON and primary.channel != HEARTBEAT:
        values = {"agent": run.agent, "error": failure.error[:500], "id": primary.message_id}
        notify_owner(tx, primary, HELD_NOTICE.format(**values))


def _append_events(
    tx: Transaction, run: EndedClaim, fates: list[tuple[Message, Disposition]], failure: Failure
) -> None:
    for message, fate in fates:
        if fate.status is MessageState.DEAD:
            continue
        held = fate.status is MessageState.HELD
        append_message_event(
            tx,
            EventType.MESSAGE_HELD if held else EventType.MESSAGE_FAILED,
            message,
            kind=failure.kind.value,
            error=failure.error[:500],
            wait=fate.wait,
        )
    dead = [message for message, fate in fates if fate.status is MessageState.DEAD]
    notify_dead(tx, dead, failure.kind.value, failure.error)


def release(tx: Transaction, token: str, reason: str = "released") -> None:
    """Put the claim's messages back where they were."""
    lock_claimed_lane(tx, token)
    run = end_claim(tx, token)
    messages = claimed_messages(tx, run)
    fate = Disposition(status=MessageState.PENDING)
    refresh_lane(
        tx, run.agent, apply_dispositions(tx, run, [(message, fate) for message in messages])
    )
    record_attempt(tx, run, messages, AttemptOutcome.RELEASED)
    append_message_event(
        tx,
        EventType.MESSAGE_RELEASED,
        messages[0],
        messages=[message.message_id for message in messages],
        reason=reason,
    )
