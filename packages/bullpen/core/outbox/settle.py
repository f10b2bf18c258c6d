"""How a response ends: acked, dead or unknown. Every end is one guarded update and one event."""

from __future__ import annotations

from sqlalchemy import bindparam, false, null, update

from bullpen.core.events.append import EventType, append_event
from bullpen.core.models import RESPONSES
from bullpen.core.states import RESPONSE_TRANSITIONS, ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

_EVENT_OF_STATE = {
    ResponseState.ACKED: EventType.RESPONSE_DELIVERED,
    ResponseState.DEAD: EventType.RESPONSE_DEAD,
    ResponseState.UNKNOWN: EventType.RESPONSE_UNKNOWN,
    ResponseState.PENDING: EventType.RESPONSE_RETRIED,
}

MOVE_RESPONSE: Statement[tuple[str, str, str, str]] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), R.status == bindparam("source"))
        .values(
            status=bindparam("target"),
            claim_token=null(),
            lease_expires_at=null(),
            sending=false(),
            last_error=bindparam("error"),
            acked_at=bindparam("acked"),
        )
        .returning(R.message_id, R.agent, R.conversation_id, R.channel)
    )
)


def move_response(
    tx: Transaction,
    response: int,
    source: ResponseState,
    target: ResponseState,
    error: str | None = None,
) -> bool:
    """Move a response, if it is still where it was; true if it did."""
    assert target in RESPONSE_TRANSITIONS[source]
    row = tx.one(
        MOVE_RESPONSE,
        {
            "response": response,
            "source": source.value,
            "target": target.value,
            "error": error,
            "acked": tx.now if target is ResponseState.ACKED else None,
        },
    )
    if row is None:
        return False
    message_id, agent, conversation_id, channel = row
    append_event(
        tx,
        _EVENT_OF_STATE[target],
        agent=agent,
        conversation_id=conversation_id,
        message_id=message_id,
        channel=channel,
        error=error,
    )
    return True


def expire_response(tx: Transaction, response: int) -> bool:
    """It was not delivered while it was worth it."""
    return move_response(
        tx, response, ResponseState.PENDING, ResponseState.DEAD, "expired before it was delivered"
    )


def mark_response_unknown(tx: Transaction, response: int, error: str) -> bool:
    """It was sent, perhaps; nobody knows."""
    return move_response(tx, response, ResponseState.PENDING, ResponseState.UNKNOWN, error)
