"""fail and release: end a claim without an answer."""

from __future__ import annotations

from shlex import quote

from bullpen.core.events.append import append_event
from bullpen.core.events.message import MessageFailed, MessageHeld, MessageReleased
from bullpen.core.message import ErrorKind, Failure, Message
from bullpen.core.outbox.notices import notify_owner
from bullpen.core.queue.attempts import (
    AttemptOutcome,
    EndedClaim,
    claimed_messages,
    end_claim,
    record_attempt,
)
from bullpen.core.queue.dead_letters import notify_dead
from bullpen.core.queue.disposition import (
    ERROR_PREVIEW_CHARS,
    RELEASED,
    DelayLane,
    Disposition,
    FailurePolicy,
    PauseLane,
    apply_dispositions,
    decide,
)
from bullpen.core.queue.lanes import Lane, delay_lane, lock_claimed_lane, pause_lane, refresh_lane
from bullpen.core.registry import PROVIDERS
from bullpen.core.retry import RetryPolicy
from bullpen.core.roster.providers import CUSTOM_PREFIX
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, visible_line

PAUSED_NOTICE = "@{agent} is paused: {error}\n{remedy}, then run: bullpen agent resume {agent}"

HELD_NOTICE = (
    "Message {id} for @{agent} is held: {error}\n"
    "To retry it, run: bullpen queue resume {id}\n"
    "To cancel it, run: bullpen queue cancel {id}"
)


def fail_claim(tx: Transaction, token: str, failure: Failure) -> list[Message]:
    """End this claim as failed; returns its messages as they were.

    `answers/complete.py` also counts the failure of a heartbeat.
    """
    check_text(failure.error, tx.settings.message_bytes, "the error")
    lane = lock_claimed_lane(tx, token)
    ended = end_claim(tx, token)
    messages = claimed_messages(tx, ended)
    policy = FailurePolicy(
        retry=RetryPolicy.from_settings(tx.settings, tx.chance),
        max_attempts=lane.max_attempts,
        max_crashes=tx.settings.max_crashes,
    )
    in_batch = len(messages) > 1
    dispositions = [(each, decide(each, failure, policy, in_batch=in_batch)) for each in messages]
    pending = apply_dispositions(tx, ended, dispositions)
    primary, disposition = dispositions[0]
    _apply_to_lane(tx, ended.agent, disposition)
    _notify_owner(tx, lane, primary, disposition, failure)
    refresh_lane(tx, ended.agent, pending)
    _record(tx, ended, dispositions, failure)
    _append_events(tx, dispositions, failure)
    return messages


def release(tx: Transaction, token: str, reason: str = "released") -> None:
    """End this claim; its messages are pending again in their old places, without a failure."""
    lock_claimed_lane(tx, token)
    ended = end_claim(tx, token)
    messages = claimed_messages(tx, ended)
    pending = apply_dispositions(tx, ended, [(each, RELEASED) for each in messages])
    refresh_lane(tx, ended.agent, pending)
    record_attempt(tx, ended, messages[0], AttemptOutcome.RELEASED, messages=len(messages))
    ids = [message.message_id for message in messages]
    append_event(tx, MessageReleased(messages[0], messages=ids, reason=reason))


def _apply_to_lane(tx: Transaction, agent: str, disposition: Disposition) -> None:
    match disposition.lane:
        case PauseLane(reason):
            pause_lane(tx, agent, reason)
        case DelayLane(wait):
            delay_lane(tx, agent, tx.now + wait)
        case None:
            pass


def _notify_owner(
    tx: Transaction, lane: Lane, primary: Message, disposition: Disposition, failure: Failure
) -> None:
    """Notify the owner if this failure paused the lane or held the message."""
    values = {"agent": primary.agent, "error": visible_line(failure.error)[:ERROR_PREVIEW_CHARS]}
    if isinstance(disposition.lane, PauseLane) and lane.state != LaneState.PAUSED:
        notice = PAUSED_NOTICE.format(**values, remedy=_remedy(failure))
        notify_owner(tx, primary, notice)
    if disposition.state is MessageState.HELD:
        notify_owner(tx, primary, HELD_NOTICE.format(**values, id=quote(primary.message_id)))


def _remedy(failure: Failure) -> str:
    """What a person must do before the agent is resumed."""
    provider = failure.usage.provider or ""
    match failure.kind:
        case ErrorKind.AUTH if provider.startswith(CUSTOM_PREFIX):
            return f"Run `bullpen provider set {provider} --key`"
        case ErrorKind.AUTH:
            info = PROVIDERS.built_in.get(provider)
            log_in = info.log_in if info else ""
            return f"Log in ({log_in})" if log_in else "Log in"
        case ErrorKind.QUOTA:
            return "Add credit, or wait until the limit ends"
        case _:
            return "Fix this"


def _record(
    tx: Transaction,
    ended: EndedClaim,
    dispositions: list[tuple[Message, Disposition]],
    failure: Failure,
) -> None:
    crashed = failure.kind is ErrorKind.CRASH
    outcome = AttemptOutcome.CRASHED if crashed else AttemptOutcome.FAILED
    primary, disposition = dispositions[0]
    record_attempt(
        tx,
        ended,
        primary,
        outcome,
        failure.usage,
        failure,
        messages=len(dispositions),
        dead=sum(each.state is MessageState.DEAD for _, each in dispositions),
        wait=disposition.wait,
    )


def _append_events(
    tx: Transaction, dispositions: list[tuple[Message, Disposition]], failure: Failure
) -> None:
    dead = []
    for message, disposition in dispositions:
        if disposition.state is MessageState.DEAD:
            dead.append(message)
            continue
        event = MessageHeld if disposition.state is MessageState.HELD else MessageFailed
        kind, error = failure.kind.value, failure.error[:ERROR_PREVIEW_CHARS]
        append_event(tx, event(message, kind=kind, error=error, wait=disposition.wait))
    notify_dead(tx, dead, failure.kind.value, failure.error)
