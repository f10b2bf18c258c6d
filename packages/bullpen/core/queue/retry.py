"""retry: a person gives a dead, cancelled or expired message another chance."""

from __future__ import annotations

from sqlalchemy import bindparam, null, true, update

from bullpen.core.events.append import EventType, tell
from bullpen.core.models import MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.find import changed, find
from bullpen.core.queue.lane import settle_lane
from bullpen.core.states import FINAL, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

AGAIN: Statement[None] = Statement(
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
    allowed = FINAL - {MessageState.COMPLETED}
    message, state, _ = find(tx, message_id, allowed, "retry", back=True)
    changed(tx, AGAIN, message, {"source": state.value, "now": tx.now})
    settle_lane(tx, message.agent, 1)
    tell(
        tx,
        EventType.MESSAGE_RETRIED,
        message,
    )
