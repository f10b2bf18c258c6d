"""cancel: a person wants no answer any more, of one message or of a whole conversation."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, null, or_, select, update

from bullpen.core.clock import SECOND
from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.message import Claim
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.find import lock_message, set_message_state
from bullpen.core.queue.give_back import Disposition, apply_dispositions, claimed_messages
from bullpen.core.queue.lane import lock_lane, refresh_lane
from bullpen.core.queue.lanes import delay_lane
from bullpen.core.queue.run import AttemptOutcome, end_claim, record_attempt
from bullpen.core.states import MessageState, source_states
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

L = LANES.c
M = MESSAGES.c

CANCEL_WAIT_MS = 2 * SECOND
"""The lane waits so long for word that the run is over, so that no second one begins beside it."""

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

SELECT_CANCELLABLE: Statement[tuple[str, str]] = Statement(
    lambda: (
        select(M.message_id, M.agent)
        .where(
            or_(
                M.message_id == bindparam("conversation"),
                (M.conversation_id == bindparam("conversation"))
                & (M.conversation_id != M.message_id),
            ),
            M.status.in_([const(state.value) for state in source_states(MessageState.CANCELLED)]),
        )
        .order_by(M.agent, M.id)
    )
)


def cancel(tx: Transaction, message_id: str, reason: str = "cancelled") -> None:
    """End this message. If it is running, its run is over: the token is void."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    message, state, token = lock_message(
        tx, message_id, source_states(MessageState.CANCELLED), "cancel"
    )
    if state is MessageState.PROCESSING and token is not None:
        _stop_run(tx, token, message.id, reason)
    else:
        set_message_state(tx, message, state, MessageState.CANCELLED, reason)
        refresh_lane(tx, message.agent, -int(state is MessageState.PENDING))
    append_message_event(
        tx,
        EventType.MESSAGE_CANCELLED,
        message,
        reason=reason,
    )


def cancel_conversation(tx: Transaction, conversation_id: str, reason: str = "cancelled") -> int:
    """End everything of this conversation that is not over; gives how many messages it was."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    found = tx.all(SELECT_CANCELLABLE, {"conversation": conversation_id})
    for agent in sorted({agent for _, agent in found}):
        lock_lane(tx, agent)
    found = tx.all(SELECT_CANCELLABLE, {"conversation": conversation_id})
    for message_id, _ in found:
        cancel(tx, message_id, reason)
    return len(found)


def confirm_run_ended(tx: Transaction, claim: Claim) -> None:
    """A worker's word that the run which was taken from it is over: the lane waits no longer."""
    lock_lane(tx, claim.agent)
    ids = json.dumps([message.id for message in claim.messages])
    tx.write(
        CLEAR_CANCEL_WAIT, {"agent": claim.agent, "ids": ids, "until": tx.now + CANCEL_WAIT_MS}
    )
    refresh_lane(tx, claim.agent, 0)


def _stop_run(tx: Transaction, token: str, message: int, reason: str) -> None:
    run = end_claim(tx, token)
    messages = claimed_messages(tx, run)
    fates = [
        (
            each,
            Disposition(status=MessageState.CANCELLED, error=reason)
            if each.id == message
            else Disposition(status=MessageState.PENDING),
        )
        for each in messages
    ]
    back = apply_dispositions(tx, run, fates)
    delay_lane(tx, run.agent, tx.now + CANCEL_WAIT_MS)
    refresh_lane(tx, run.agent, back)
    record_attempt(tx, run, messages, AttemptOutcome.CANCELLED)
    tx.wake("runs")
    others = [each for each in messages if each.id != message]
    if others:
        append_message_event(
            tx,
            EventType.MESSAGE_RELEASED,
            others[0],
            messages=[each.message_id for each in others],
            reason="another message of the run was cancelled",
        )
