"""cancel: a person wants no answer any more, of one message or of a whole conversation."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, null, or_, select, update

from bullpen.core.clock import SECOND
from bullpen.core.events.append import EventType, tell
from bullpen.core.message import Claim
from bullpen.core.models import LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.find import find, set_state
from bullpen.core.queue.give_back import Fate, claimed_messages, give_back
from bullpen.core.queue.lane import lock_lane, settle_lane
from bullpen.core.queue.lanes import wait_lane
from bullpen.core.queue.run import RunOutcome, end_run, record_attempt
from bullpen.core.states import MessageState, sources
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

L = LANES.c
M = MESSAGES.c

DYING = 2 * SECOND
"""The lane waits so long for word that the run is over, so that no second one begins beside it."""

DIED: Statement[None] = Statement(
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

OPEN: Statement[tuple[str, str]] = Statement(
    lambda: (
        select(M.message_id, M.agent)
        .where(
            or_(
                M.message_id == bindparam("conversation"),
                (M.conversation_id == bindparam("conversation"))
                & (M.conversation_id != M.message_id),
            ),
            M.status.in_([const(state.value) for state in sources(MessageState.CANCELLED)]),
        )
        .order_by(M.agent, M.id)
    )
)


def cancel(tx: Transaction, message_id: str, reason: str = "cancelled") -> None:
    """End this message. If it is running, its run is over: the token is void."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    message, state, token = find(tx, message_id, sources(MessageState.CANCELLED), "cancel")
    if state is MessageState.PROCESSING and token is not None:
        _stop_run(tx, token, message.id, reason)
    else:
        set_state(tx, message, state, MessageState.CANCELLED, reason)
        settle_lane(tx, message.agent, -int(state is MessageState.PENDING))
    tell(
        tx,
        EventType.MESSAGE_CANCELLED,
        message,
        reason=reason,
    )


def cancel_conversation(tx: Transaction, conversation_id: str, reason: str = "cancelled") -> int:
    """End everything of this conversation that is not over; gives how many messages it was."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    found = tx.all(OPEN, {"conversation": conversation_id})
    for agent in sorted({agent for _, agent in found}):
        lock_lane(tx, agent)
    found = tx.all(OPEN, {"conversation": conversation_id})
    for message_id, _ in found:
        cancel(tx, message_id, reason)
    return len(found)


def has_died(tx: Transaction, claim: Claim) -> None:
    """A worker's word that the run which was taken from it is over: the lane waits no longer."""
    lock_lane(tx, claim.agent)
    ids = json.dumps([message.id for message in claim.messages])
    tx.write(DIED, {"agent": claim.agent, "ids": ids, "until": tx.now + DYING})
    settle_lane(tx, claim.agent, 0)


def _stop_run(tx: Transaction, token: str, message: int, reason: str) -> None:
    run = end_run(tx, token)
    messages = claimed_messages(tx, run)
    fates = [
        (
            each,
            Fate(status=MessageState.CANCELLED, error=reason)
            if each.id == message
            else Fate(status=MessageState.PENDING),
        )
        for each in messages
    ]
    back = give_back(tx, run, fates)
    wait_lane(tx, run.agent, tx.now + DYING)
    settle_lane(tx, run.agent, back)
    record_attempt(tx, run, messages, RunOutcome.CANCELLED)
    tx.wake("runs")
    others = [each for each in messages if each.id != message]
    if others:
        tell(
            tx,
            EventType.MESSAGE_RELEASED,
            others[0],
            messages=[each.message_id for each in others],
            reason="another message of the run was cancelled",
        )
