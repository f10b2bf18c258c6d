"""The moves of a response between its states, each with its event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sqlalchemy import ColumnElement, bindparam, false, null, select, update

from bullpen.core.clock import MINUTE
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.response import (
    ResponseDead,
    ResponseDelivered,
    ResponseOutcome,
    ResponseRetried,
    ResponseUnconfirmed,
    ResponseUnknown,
)
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.parts import decode_part
from bullpen.core.states import RESPONSE_STATES, ResponseState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

LOOK_UP_TIME = 10 * MINUTE
"""How long the outcome of a part is looked up before people are notified that it is unknown."""

_EVENT_OF_STATE = {
    ResponseState.ACKED: ResponseDelivered,
    ResponseState.DEAD: ResponseDead,
    ResponseState.UNKNOWN: ResponseUnknown,
    ResponseState.PENDING: ResponseRetried,
}


@dataclass(frozen=True, slots=True)
class DueResponse:
    """A response that is due: what decides whether it is leased."""

    id: int
    expires_at: int
    delivery_attempts: int
    sending: bool
    sending_part: str | None
    parts_sent: int
    claim_token: str | None
    lapses: int | None

    @property
    def complete(self) -> bool:
        """Whether its last part was sent, as far as its client told which one is the last."""
        part = decode_part(self.sending_part)
        return part is not None and part.last and part.part < self.parts_sent


@dataclass(frozen=True, slots=True)
class MovedResponse:
    """A response that changed its state: what the event about it says."""

    id: int
    message_id: str
    agent: str
    conversation_id: str
    channel: str
    sender_id: str | None
    delivery_attempts: int
    parts_sent: int
    created_at: int


def pending() -> ColumnElement[bool]:
    """Whether a response is pending."""
    return R.status == const(ResponseState.PENDING.value)


SELECT_DUE_RESPONSE: Statement[DueResponse] = Statement(
    lambda: select(*columns(DueResponse, RESPONSES)).where(
        R.id == bindparam("response"), pending()
    ),
    DueResponse,
)

MOVE_RESPONSE: Statement[MovedResponse] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), R.status == bindparam("source"))
        .values(
            status=bindparam("target"),
            claim_token=null(),
            lease_expires_at=null(),
            sending=false(),
            recover_at=bindparam("recover"),
            recoveries=null(),
            tell_at=bindparam("tell"),
            last_error=bindparam("error"),
            acked_at=bindparam("acked"),
        )
        .returning(*columns(MovedResponse, RESPONSES))
    ),
    MovedResponse,
)


def move_response(
    tx: Transaction,
    response: int,
    source: ResponseState,
    target: ResponseState,
    error: str | None = None,
) -> bool:
    """Change the state of a response; False if it was not in the first state."""
    return _move(tx, response, source, target, _EVENT_OF_STATE[target], error)


def expire_response(tx: Transaction, response: int) -> bool:
    """Make a pending response dead: it was not delivered in time. A complete one is acked."""
    row = tx.one(SELECT_DUE_RESPONSE, {"response": response})
    if row is not None and row.complete:
        return move_response(tx, response, ResponseState.PENDING, ResponseState.ACKED)
    return fail_response(tx, response, "expired before it was delivered")


def mark_response_unknown(
    tx: Transaction, response: int, error: str, *, look_up: bool = True
) -> bool:
    """Make a pending response unknown: it may have arrived."""
    move = partial(_move, tx, response, ResponseState.PENDING, ResponseState.UNKNOWN)
    if not look_up:
        return move(ResponseUnknown, error)
    return move(ResponseUnconfirmed, error, recover=tx.now, tell=tx.now + LOOK_UP_TIME)


def fail_response(tx: Transaction, response: int, error: str) -> bool:
    """Make a pending response dead: it was not delivered."""
    return move_response(tx, response, ResponseState.PENDING, ResponseState.DEAD, error)


def append_outcome(
    tx: Transaction, event: type[ResponseOutcome], row: MovedResponse, error: str | None
) -> None:
    """Append the event about the end of a delivery, or about a retry by a person."""
    outcome = event(
        MessageRef(row.agent, row.conversation_id, row.message_id),
        channel=row.channel,
        error=error,
        response=row.id,
        tries=row.delivery_attempts,
        waited=max(0, tx.now - row.created_at),
        parts=row.parts_sent,
        sender_id=row.sender_id,
    )
    append_event(tx, outcome)


def _move(
    tx: Transaction,
    response: int,
    source: ResponseState,
    target: ResponseState,
    event: type[ResponseOutcome],
    error: str | None = None,
    recover: int | None = None,
    tell: int | None = None,
) -> bool:
    assert target in RESPONSE_STATES[source].moves_to
    values = {"response": response, "source": source.value, "target": target.value, "error": error}
    acked = tx.now if target is ResponseState.ACKED else None
    row = tx.one(MOVE_RESPONSE, {**values, "acked": acked, "recover": recover, "tell": tell})
    if row is None:
        return False
    append_outcome(tx, event, row, error)
    if recover is not None:
        tx.wake(f"responses:{row.channel}")
    return True
