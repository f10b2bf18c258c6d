"""decide: the consequences of a failed run for each message and for the lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sqlalchemy import bindparam, func, null, update

from bullpen.core.message import ALONE, HEARTBEAT, ErrorKind, Failure, Message
from bullpen.core.models import MESSAGES
from bullpen.core.queue.attempts import EndedClaim, is_claimed
from bullpen.core.queue.lanes import pause_reason
from bullpen.core.retry import RetryPolicy
from bullpen.core.states import MESSAGE_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c

MAX_ERROR_CHARS = 10_000
"""The length of the error in a message."""

ERROR_PREVIEW_CHARS = 500
"""The length of the error in events, notices and the reason of a lane."""


MESSAGE_KINDS = frozenset(
    {ErrorKind.RETRYABLE, ErrorKind.PERMANENT, ErrorKind.NEEDS_PERSON, ErrorKind.CRASH}
)
"""The kinds of failures that a message may have caused; the others concern the whole lane."""


@dataclass(frozen=True, slots=True)
class PauseLane:
    """Pause the lane until a person resumes it."""

    reason: str


@dataclass(frozen=True, slots=True)
class DelayLane:
    """Claim nothing from the lane for this many milliseconds."""

    wait: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Disposition:
    """All consequences for a claimed message and its lane."""

    state: MessageState
    wait: int = 0
    """Milliseconds until it can be claimed again."""
    retries: int = 0
    """The number added to its retry count."""
    crashes: int = 0
    """The number added to its crash count."""
    error: str | None = None
    error_kind: ErrorKind | None = None
    lane: PauseLane | DelayLane | None = None

    @property
    def alone(self) -> bool:
        """Whether it is claimed alone from now on."""
        return self.error_kind in MESSAGE_KINDS


PAUSING_KINDS = (ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SETUP)
"""The kinds of failures that pause the lane until a person changes something."""


def is_paused_by_failure(tx: Transaction, agent: str) -> bool:
    """Whether a failed run paused the lane of this agent, and not a person."""
    reason = pause_reason(tx, agent)
    return reason is not None and reason.partition(": ")[0] in PAUSING_KINDS


RELEASED = Disposition(state=MessageState.PENDING)
"""Pending again in its old place, without a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """The limits of attempts, and the delays between them."""

    retry: RetryPolicy
    max_attempts: int
    """The number of failures after which a message is dead."""
    max_crashes: int
    """The number of runs lost with their processor after which a message is dead."""


def decide(
    message: Message, failure: Failure, policy: FailurePolicy, *, in_batch: bool = False
) -> Disposition:
    """Decide what happens to this message after its run, or the run of its batch, failed.

    After the failure of a batch no message becomes dead or held, because another one may be the
    cause: each is retried alone.
    """
    disposition = _decide_by_kind(message, failure, policy)
    if in_batch and disposition.state is not MessageState.PENDING:
        disposition = replace(disposition, state=MessageState.PENDING, retries=0, crashes=0)
    if message.channel == HEARTBEAT:
        # A second attempt would exceed the rate of the heartbeat.
        disposition = replace(disposition, state=MessageState.DEAD)
    return replace(disposition, wait=0) if disposition.state is MessageState.DEAD else disposition


def _decide_by_kind(message: Message, failure: Failure, policy: FailurePolicy) -> Disposition:
    kind = failure.kind
    text = failure.error[:MAX_ERROR_CHARS]
    retried = Disposition(state=MessageState.PENDING, error=text, error_kind=kind)
    match kind:
        case ErrorKind.RETRYABLE:
            failures = message.retry_count + 1
            wait = policy.retry.delay(failures, failure.retry_after)
            state = MessageState.DEAD if failures >= policy.max_attempts else MessageState.PENDING
            return replace(retried, state=state, wait=wait, retries=1)
        case ErrorKind.CRASH:
            if message.crash_count + 1 >= policy.max_crashes:
                return replace(retried, state=MessageState.DEAD, crashes=1)
            return replace(retried, crashes=1)
        case ErrorKind.PERMANENT:
            return replace(retried, state=MessageState.DEAD, retries=1)
        case ErrorKind.NEEDS_PERSON:
            return replace(retried, state=MessageState.HELD)
        case ErrorKind.RATE_LIMIT:
            # At least 1, because a lane with a delay of 0 could be claimed at once.
            wait = max(1, policy.retry.delay(1, failure.retry_after))
            return replace(retried, lane=DelayLane(wait))
        case ErrorKind.AUTH | ErrorKind.QUOTA | ErrorKind.SETUP:
            reason = f"{kind}: {failure.error[:ERROR_PREVIEW_CHARS]}"
            return replace(retried, lane=PauseLane(reason))
        case _:
            assert_never(kind)


APPLY_DISPOSITION: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(*is_claimed())
        .values(
            status=bindparam("status"),
            retry_count=M.retry_count + bindparam("retries"),
            crash_count=M.crash_count + bindparam("crashes"),
            last_error=func.coalesce(bindparam("error"), M.last_error),
            error_kind=func.coalesce(bindparam("kind"), M.error_kind),
            batch_key=func.coalesce(bindparam("batch_key"), M.batch_key),
            ready=bindparam("is_ready"),
            available_at=bindparam("at"),
            claim_token=null(),
            updated_at=bindparam("now"),
        )
    )
)


def apply_dispositions(
    tx: Transaction, ended: EndedClaim, dispositions: Sequence[tuple[Message, Disposition]]
) -> int:
    """Write the disposition of each message; returns how many are pending again.

    The caller changes the lane by the disposition of the primary message.
    """
    for _, each in dispositions:
        assert each.state in MESSAGE_STATES[MessageState.PROCESSING].moves_to
    tx.change_each(
        APPLY_DISPOSITION,
        [
            {
                "message": message.id,
                "token": ended.token,
                "status": each.state.value,
                "retries": each.retries,
                "crashes": each.crashes,
                "error": each.error,
                "kind": None if each.error_kind is None else each.error_kind.value,
                "batch_key": ALONE if each.alone else None,
                "is_ready": each.wait == 0,
                "at": tx.now + each.wait,
                "now": tx.now,
            }
            for message, each in dispositions
        ],
    )
    return sum(each.state is MessageState.PENDING for _, each in dispositions)
