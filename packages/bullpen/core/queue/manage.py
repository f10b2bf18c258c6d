"""An operator's actions on a message: cancel, retry, drop, hold and resume."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import bindparam, delete, null, select, true, update

from bullpen.core.clock import SECOND
from bullpen.core.errors import IllegalMove, LaneClosed, UnknownMessage
from bullpen.core.events.append import append_event
from bullpen.core.events.message import (
    MessageCancelled,
    MessageChanged,
    MessageDropped,
    MessageHeld,
    MessageReleased,
    MessageResumed,
    MessageRetried,
)
from bullpen.core.message import Claim, Message
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const, encode_list
from bullpen.core.queue.attempts import (
    AttemptOutcome,
    claimed_messages,
    end_claim,
    record_attempt,
)
from bullpen.core.queue.disposition import RELEASED, Disposition, apply_dispositions
from bullpen.core.queue.lanes import delay_lane, lock_lane, refresh_lane
from bullpen.core.states import (
    MESSAGE_STATES,
    UNANSWERED_STATES,
    WAITING_STATES,
    LaneState,
    MessageState,
    source_states,
)
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown

M = MESSAGES.c
L = LANES.c

CANCEL_WAIT_MS = 2 * SECOND
"""The time that a lane waits for a cancelled run to end, so that two runs never overlap."""

SELECT_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(M.agent).where(M.message_id == bindparam("message_id"))
)

SELECT_STATUS: Statement[tuple[str, str | None]] = Statement(
    lambda: select(M.status, M.claim_token).where(M.message_id == bindparam("message_id"))
)

SELECT_MESSAGE: Statement[Message] = Statement(
    lambda: select(*columns(Message, MESSAGES)).where(M.message_id == bindparam("message_id")),
    Message,
)

SET_MESSAGE_STATE: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), M.status == bindparam("source"))
        .values(
            status=bindparam("target"),
            last_error=bindparam("reason"),
            claim_token=null(),
            updated_at=bindparam("now"),
        )
    )
)

RETRY_MESSAGE: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), M.status == bindparam("source"))
        .values(
            status=const(MessageState.PENDING.value),
            retry_count=const(0),
            crash_count=const(0),
            ready=true(),
            available_at=bindparam("now"),
            deadline=null(),
            updated_at=bindparam("now"),
        )
    )
)

REVISE_MESSAGE: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(M.id == bindparam("message"), M.status == bindparam("source"))
        .values(message=bindparam("text"), updated_at=bindparam("now"))
    )
)

DELETE_MESSAGE: Statement[None] = Statement(
    lambda: delete(MESSAGES).where(M.id == bindparam("message"), M.status == bindparam("source"))
)

CLEAR_CANCEL_WAIT: Statement[None] = Statement(
    lambda: (
        update(LANES)
        .where(
            L.agent == bindparam("agent"),
            L.batch == bindparam("ids"),
            L.claim_token.is_(None),
            L.not_before <= bindparam("until"),
        )
        .values(not_before=null())
    )
)


class LockedMessage(NamedTuple):
    """A message with a locked lane."""

    message: Message
    state: MessageState
    claim_token: str | None


def cancel(tx: Transaction, message_id: str, reason: str = "cancelled") -> None:
    """Cancel this message; if it is processing, the token of its run becomes invalid."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    locked = _lock_message(tx, message_id, source_states(MessageState.CANCELLED), "cancel")
    message, state, token = locked
    if state is MessageState.PROCESSING and token is not None:
        _stop_run(tx, token, message.id, reason)
    else:
        _move(tx, locked, MessageState.CANCELLED, SET_MESSAGE_STATE, reason)
        refresh_lane(tx, message.agent, -int(state is MessageState.PENDING))
    append_event(tx, MessageCancelled(message, reason=reason))


def confirm_run_ended(tx: Transaction, claim: Claim) -> None:
    """Record that the run of this cancelled claim has ended, so that its lane stops waiting."""
    lock_lane(tx, claim.agent)
    ids = encode_list([message.id for message in claim.messages])
    tx.write(
        CLEAR_CANCEL_WAIT, {"agent": claim.agent, "ids": ids, "until": tx.now + CANCEL_WAIT_MS}
    )
    refresh_lane(tx, claim.agent, 0)


def retry(tx: Transaction, message_id: str) -> None:
    """Put a message back into its old place, with no failures counted and no deadline."""
    locked = _lock_message(tx, message_id, UNANSWERED_STATES, "retry", into_lane=True)
    _move(tx, locked, MessageState.PENDING, RETRY_MESSAGE)
    refresh_lane(tx, locked.message.agent, 1)
    append_event(tx, MessageRetried(locked.message))


def drop(tx: Transaction, message_id: str) -> None:
    """Delete a message; its events and attempts are kept."""
    locked = _lock_message(tx, message_id, UNANSWERED_STATES, "drop")
    _change(tx, DELETE_MESSAGE, locked, {})
    append_event(tx, MessageDropped(locked.message))


def hold(tx: Transaction, message_id: str, reason: str) -> None:
    """Hold a pending message: it is not claimed until a person resumes it."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    locked = _lock_message(tx, message_id, (MessageState.PENDING,), "hold")
    _move(tx, locked, MessageState.HELD, SET_MESSAGE_STATE, reason)
    refresh_lane(tx, locked.message.agent, -1)
    append_event(tx, MessageHeld(locked.message, reason=reason))


def resume(tx: Transaction, message_id: str) -> None:
    """Put a held message back into its old place in the lane."""
    locked = _lock_message(tx, message_id, (MessageState.HELD,), "resume", into_lane=True)
    _move(tx, locked, MessageState.PENDING, SET_MESSAGE_STATE)
    refresh_lane(tx, locked.message.agent, 1)
    append_event(tx, MessageResumed(locked.message))


def revise(tx: Transaction, message_id: str, text: str) -> None:
    """Change the text of a message that is pending or held."""
    check_text(text, tx.settings.message_bytes)
    locked = _lock_message(tx, message_id, WAITING_STATES, "change")
    _change(tx, REVISE_MESSAGE, locked, {"text": text, "now": tx.now})
    append_event(tx, MessageChanged(locked.message))


def _lock_message(
    tx: Transaction,
    message_id: str,
    allowed: Collection[MessageState],
    verb: str,
    *,
    into_lane: bool = False,
) -> LockedMessage:
    """Lock the lane of a message that is in one of the allowed states.

    With `into_lane` the message will return to its lane, which must not be archived.
    """
    check_text(message_id, tx.settings.message_bytes, "the message id")
    owner = tx.one(SELECT_AGENT, {"message_id": message_id})
    if owner is None:
        raise UnknownMessage(describe_unknown("message", message_id))
    lane = lock_lane(tx, owner[0])
    status = tx.one(SELECT_STATUS, {"message_id": message_id})
    message = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if status is None or message is None:
        raise UnknownMessage(f"message {message_id!r} was deleted a moment ago")
    state = MessageState(status[0])
    if state not in allowed:
        names = " or ".join(sorted(allowed))
        raise IllegalMove(
            f"cannot {verb} message {message_id}: it is {state}",
            hint=f"Only messages that are {names} allow this.",
        )
    if into_lane and lane.state == LaneState.ARCHIVED:
        raise LaneClosed(
            f"cannot {verb} message {message_id}: @{owner[0]} was removed",
            hint=f"Run `bullpen agent add {owner[0]}` to create the agent again.",
        )
    return LockedMessage(message, state, status[1])


def _move(
    tx: Transaction,
    locked: LockedMessage,
    target: MessageState,
    statement: Statement[None],
    reason: str | None = None,
) -> None:
    """Change the state of a locked message with this statement."""
    assert target in MESSAGE_STATES[locked.state].moves_to
    _change(tx, statement, locked, {"target": target.value, "reason": reason, "now": tx.now})


def _change(
    tx: Transaction, statement: Statement[None], locked: LockedMessage, values: dict[str, object]
) -> None:
    """Run a statement on a locked message, which maintenance may have archived meanwhile."""
    where = {"message": locked.message.id, "source": locked.state.value}
    if tx.change(statement, {**values, **where}) == 0:
        raise UnknownMessage(f"message {locked.message.message_id!r} was archived a moment ago")


def _stop_run(tx: Transaction, token: str, message: int, reason: str) -> None:
    """End the claim: this message of the batch is cancelled, the others are pending again."""
    ended = end_claim(tx, token)
    messages = claimed_messages(tx, ended)
    cancelled = Disposition(state=MessageState.CANCELLED, error=reason)
    pending = apply_dispositions(
        tx, ended, [(each, cancelled if each.id == message else RELEASED) for each in messages]
    )
    delay_lane(tx, ended.agent, tx.now + CANCEL_WAIT_MS)
    refresh_lane(tx, ended.agent, pending)
    record_attempt(tx, ended, messages[0], AttemptOutcome.CANCELLED, messages=len(messages))
    tx.wake("runs")
    others = [each for each in messages if each.id != message]
    if others:
        released = MessageReleased(
            others[0],
            messages=[each.message_id for each in others],
            reason="another message of the run was cancelled",
        )
        append_event(tx, released)
