"""drop: a person deletes a message that is dead, cancelled or expired, for good."""

from __future__ import annotations

from sqlalchemy import bindparam, delete

from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.models import MESSAGES
from bullpen.core.queue.find import lock_message, update_message
from bullpen.core.states import TERMINAL_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

DELETE_MESSAGE: Statement[None] = Statement(
    lambda: delete(MESSAGES).where(
        MESSAGES.c.id == bindparam("message"), MESSAGES.c.status == bindparam("source")
    )
)


def drop(tx: Transaction, message_id: str) -> None:
    """Delete it; the events and attempts that tell of it stay."""
    allowed = TERMINAL_STATES - {MessageState.COMPLETED}
    message, state, _ = lock_message(tx, message_id, allowed, "drop")
    update_message(tx, DELETE_MESSAGE, message, {"source": state.value})
    append_message_event(
        tx,
        EventType.MESSAGE_DROPPED,
        message,
    )
