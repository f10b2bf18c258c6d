"""hold and let_go: a message waits for a person, and no longer."""

from __future__ import annotations

from bullpen.core.events.append import EventType, tell
from bullpen.core.queue.find import find, set_state
from bullpen.core.queue.lane import settle_lane
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text


def hold(tx: Transaction, message_id: str, reason: str) -> None:
    """Keep a waiting message from being claimed until somebody lets it go."""
    check_text(reason, tx.settings.message_bytes, "the reason")
    message, state, _ = find(tx, message_id, (MessageState.PENDING,), "hold")
    set_state(tx, message, state, MessageState.HELD, reason)
    settle_lane(tx, message.agent, -1)
    tell(
        tx,
        EventType.MESSAGE_HELD,
        message,
        reason=reason,
    )


def let_go(tx: Transaction, message_id: str) -> None:
    """Let a held message take its old place in the lane."""
    message, state, _ = find(tx, message_id, (MessageState.HELD,), "let go", back=True)
    set_state(tx, message, state, MessageState.PENDING)
    settle_lane(tx, message.agent, 1)
    tell(
        tx,
        EventType.MESSAGE_LET_GO,
        message,
    )
