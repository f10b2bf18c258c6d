"""hold and resume: a message waits for a person, and no longer."""

from __future__ import annotations

from sqlalchemy import bindparam, or_, select

from bullpen.core.errors import LaneClosed
from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.find import lock_message, set_message_state
from bullpen.core.queue.lane import lock_lane, refresh_lane
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c

SELECT_HELD: Statement[tuple[str, str]] = Statement(
    lambda: (
        select(M.message_id, M.agent)
        .where(
            or_(
                M.message_id == bindparam("conversation"),
                (M.conversation_id == bindparam("conversation"))
                & (M.conversation_id != M.message_id),
            ),
            M.status == const(MessageState.HELD.value),
        )
        .order_by(M.agent, M.id)
    )
)


def hold(tx: Transaction, message_id: str, reason: str) -> None:
    """Keep a waiting message from being claimed until somebody lets it go."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    message, state, _ = lock_message(tx, message_id, (MessageState.PENDING,), "hold")
    set_message_state(tx, message, state, MessageState.HELD, reason)
    refresh_lane(tx, message.agent, -1)
    append_message_event(
        tx,
        EventType.MESSAGE_HELD,
        message,
        reason=reason,
    )


def resume(tx: Transaction, message_id: str) -> None:
    """Let a held message take its old place in the lane."""
    message, state, _ = lock_message(tx, message_id, (MessageState.HELD,), "let go", back=True)
    set_message_state(tx, message, state, MessageState.PENDING)
    refresh_lane(tx, message.agent, 1)
    append_message_event(
        tx,
        EventType.MESSAGE_LET_GO,
        message,
    )


def resume_conversation(tx: Transaction, conversation_id: str) -> int:
    """Let everything go that is held of a conversation; gives how many messages it was.

    What is for an agent that was removed stays held, and keeps nobody else from going on.
    """
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    found = tx.all(SELECT_HELD, {"conversation": conversation_id})
    agents = {agent for _, agent in found}
    for agent in sorted(agents):
        lock_lane(tx, agent)
    gone = 0
    closed: LaneClosed | None = None
    for message_id, agent in tx.all(SELECT_HELD, {"conversation": conversation_id}):
        if agent not in agents:
            continue  # held since its lane was to be locked
        try:
            resume(tx, message_id)
            gone += 1
        except LaneClosed as error:
            closed = error
    if closed is not None and gone == 0:
        raise closed
    return gone
