"""fail: a run did not succeed. What becomes of its messages depends on the kind of error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from bullpen.core.backoff import backoff
from bullpen.core.clock import SECOND
from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.heartbeats.answered import fail_heartbeat, is_heartbeat
from bullpen.core.message import ErrorKind, Message
from bullpen.core.outbox.people import notify_owner
from bullpen.core.outcome import Failure
from bullpen.core.queue.bury import notify_dead
from bullpen.core.queue.give_back import Disposition, apply_dispositions, claimed_messages
from bullpen.core.queue.lane import lock_claimed_lane, refresh_lane
from bullpen.core.queue.lanes import delay_lane, pause_lane
from bullpen.core.queue.run import AttemptOutcome, EndedClaim, end_claim, record_attempt
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

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


def fail(tx: Transaction, token: str, failure: Failure) -> None:
    """End this claim without an answer."""
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
    return replace(fate, status=MessageState.DEAD, wait=0) if is_heartbeat(message) else fate


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
    elif failure.kind is ErrorKind.NEEDS_PERSON and not is_heartbeat(primary):
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
    for message, _ in fates:
        if is_heartbeat(message):
            fail_heartbeat(tx, message, failure.error)
    dead = [message for message, fate in fates if fate.status is MessageState.DEAD]
    notify_dead(tx, dead, failure.kind.value, failure.error)
