"""What a person does with a response: read it, send it again, or set it aside."""

from __future__ import annotations

from sqlalchemy import bindparam, null, or_, select, update

from bullpen.core.clock import HOUR
from bullpen.core.errors import IllegalMove, UnknownResponse
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import MAX_ID_DIGITS
from bullpen.core.outbox.settle import move_response
from bullpen.core.states import RESPONSE_TRANSITIONS, ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

LOCK_RESPONSE: Statement[tuple[str, str]] = Statement(
    lambda: select(R.status, R.channel).where(R.id == bindparam("response")).with_for_update()
)

RETRY_RESPONSE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"))
        .values(
            available_at=bindparam("now"),
            expires_at=bindparam("expires"),
            delivery_attempts=const(0),
            possible_duplicate=or_(
                R.possible_duplicate, bindparam("sent_before", type_=R.sending.type)
            ),
            claimed_by=null(),
        )
    )
)


def ack_response(tx: Transaction, response: int) -> None:
    """Ack a response that was read where it lies: on the web, in a terminal, over the API."""
    _end_response(tx, response, ResponseState.ACKED, "ack it")


def drop_response(tx: Transaction, response: int, reason: str = "set aside") -> None:
    """Do not deliver it any more."""
    _end_response(tx, response, ResponseState.DEAD, "set it aside", reason)


def retry_response(tx: Transaction, response: int) -> None:
    """Deliver a dead or unknown response once more; the latter is labelled as a repeat."""
    state, channel = _lock_response(tx, response)
    if state is ResponseState.PENDING or ResponseState.PENDING not in RESPONSE_TRANSITIONS[state]:
        raise IllegalMove(
            f"response {response} is {state}: you cannot send it again",
            hint="That can be done to a response that is dead or unknown.",
        )
    move_response(tx, response, state, ResponseState.PENDING)
    tx.write(
        RETRY_RESPONSE,
        {
            "response": response,
            "now": tx.now,
            "expires": tx.now + tx.settings.response_hours * HOUR,
            "sent_before": state is ResponseState.UNKNOWN,
        },
    )
    tx.wake(f"responses:{channel}")


def _end_response(
    tx: Transaction, response: int, target: ResponseState, verb: str, reason: str | None = None
) -> None:
    state, _ = _lock_response(tx, response)
    if target not in RESPONSE_TRANSITIONS[state]:
        allowed = ", ".join(each for each, to in RESPONSE_TRANSITIONS.items() if target in to)
        raise IllegalMove(
            f"response {response} is {state}: you cannot {verb}",
            hint=f"That can be done to a response that is {allowed}.",
        )
    move_response(tx, response, state, target, reason)


def _lock_response(tx: Transaction, response: int) -> tuple[ResponseState, str]:
    row = (
        tx.one(LOCK_RESPONSE, {"response": response}) if 0 < response < 10**MAX_ID_DIGITS else None
    )
    if row is None:
        raise UnknownResponse(f"there is no response {response}")
    return ResponseState(row[0]), row[1]
