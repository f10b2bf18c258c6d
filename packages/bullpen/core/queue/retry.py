"""retry: a person gives a dead, cancelled or expired message another chance."""

from __future__ import annotations

from sqlalchemy import bindparam, null, true, update

from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.find import lock_message, update_message
from bullpen.core.queue.lane import refresh_lane
from bullpen.core.states import TERMINAL_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

RETRY_MESSAGE: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(MESSAGES.c.id == bindparam("message"), MESSAGES.c.status == bindparam("source"))
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


def retry(tx: Transaction, message_id: str) -> None:
    """Put it back into its old place, its tries forgotten and its deadline lifted."""
    allowed = TERMINAL_STATES - {MessageState.COMPLETED}
    message, state, _ = lock_message(tx, message_id, allowed, "retry", back=True)
    update_message(tx, RETRY_MESSAGE, message, {"source": state.value, "now": tx.now})
    refresh_lane(tx, message.agent, 1)
    append_message_event(
        tx,
        EventType.MESSAGE_RETRIED,
        message,
    )
