"""drop: a person deletes a message that is dead, cancelled or expired, for good."""

from __future__ import annotations

from sqlalchemy import bindparam, delete

from bullpen.core.events.append import EventType, tell
from bullpen.core.models import MESSAGES
from bullpen.core.queue.find import changed, find
from bullpen.core.states import FINAL, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

DELETE: Statement[None] = Statement(
    lambda: delete(MESSAGES).where(
        MESSAGES.c.id == bindparam("message"), MESSAGES.c.status == bindparam("source")
    )
)


def drop(tx: Transaction, message_id: str) -> None:
    """Delete it; the events and attempts that tell of it stay."""
    allowed = FINAL - {MessageState.COMPLETED}
    message, state, _ = find(tx, message_id, allowed, "drop")
    changed(tx, DELETE, message, {"source": state.value})
    tell(
        tx,
        EventType.MESSAGE_DROPPED,
        message,
    )
