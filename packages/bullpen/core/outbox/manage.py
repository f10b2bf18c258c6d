"""Verbs of an operator: ack, drop and retry a response, and settle those of a restored store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, case, func, null, or_, select, update

from bullpen.core.clock import HOUR
from bullpen.core.errors import IllegalMove, UnknownResponse
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import mark_response_unknown, move_response, pending
from bullpen.core.states import RESPONSE_STATES, ResponseState
from bullpen.core.store.paging import MAX_ROW_ID
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

BATCH_RESPONSES = 500
"""How many responses one transaction drops or extends."""


@dataclass(frozen=True, slots=True)
class ChannelBacklog:
    """The pending responses of one channel."""

    channel: str
    count: int
    old: int
    """How many of them are older than the moment that was asked for."""
    oldest_at: int

    @property
    def sent(self) -> bool:
        """Whether a channel's client delivers them; if not, people read them from the store."""
        return self.channel not in PULL_CHANNELS


def _old() -> ColumnElement[bool]:
    return R.created_at < bindparam("before")


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

COUNT_PENDING: Statement[ChannelBacklog] = Statement(
    lambda: (
        select(
            R.channel,
            func.count(),
            func.sum(case((_old(), const(1)), else_=const(0))),
            func.min(R.created_at),
        )
        .where(pending())
        .group_by(R.channel)
        .order_by(R.channel)
    ),
    ChannelBacklog,
)

SELECT_OLD: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(R.channel == bindparam("channel"), pending(), _old())
        .limit(const(BATCH_RESPONSES))
    )
)

SELECT_STALE: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(R.channel == bindparam("channel"), pending(), R.expires_at < bindparam("until"))
        .limit(const(BATCH_RESPONSES))
    )
)

EXTEND_EXPIRY: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), pending())
        .values(expires_at=bindparam("until"))
    )
)

# Reads all pending responses: it runs once in a restored store.
SELECT_LEASED: Statement[tuple[int, bool]] = Statement(
    lambda: select(R.id, R.sending).where(pending(), R.claim_token.is_not(None)).order_by(R.id)
)

RELEASE_RESPONSE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), pending())
        .values(
            claim_token=null(),
            claimed_by=null(),
            lease_expires_at=null(),
            available_at=bindparam("now"),
            delivery_attempts=R.delivery_attempts - const(1),
        )
    )
)


def ack_response(tx: Transaction, response: int) -> None:
    """Ack a response that was read: on the web, in a terminal or over the API."""
    _end_response(tx, response, ResponseState.ACKED, "ack it")


def drop_response(tx: Transaction, response: int, reason: str = "set aside") -> None:
    """Make a response dead: it is not delivered any more."""
    _end_response(tx, response, ResponseState.DEAD, "set it aside", reason)


def retry_response(tx: Transaction, response: int) -> None:
    """Deliver a dead or unknown response again, the latter as a possible duplicate."""
    state, channel = _lock_response(tx, response)
    if ResponseState.PENDING not in RESPONSE_STATES[state].moves_to:
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


def list_backlog(tx: Transaction, before: int = 0) -> list[ChannelBacklog]:
    """The pending responses by channel."""
    return tx.all(COUNT_PENDING, {"before": before})


def drop_old(tx: Transaction, channel: str, before: int, reason: str) -> int:
    """Drop a batch of a channel's pending responses from before a moment; returns how many."""
    old = tx.all(SELECT_OLD, {"channel": channel, "before": before})
    for (response,) in old:
        drop_response(tx, response, reason)
    return len(old)


def extend_expiry(tx: Transaction, channel: str, now: int) -> int:
    """Give a batch of a channel's pending responses the lifetime of new ones; returns how many.

    `now` must be the same for all batches: with a later one every batch would find rows again.
    """
    until = now + tx.settings.response_hours * HOUR
    stale = tx.all(SELECT_STALE, {"channel": channel, "until": until})
    tx.write_each(EXTEND_EXPIRY, [{"response": response, "until": until} for (response,) in stale])
    return len(stale)


def release_responses(tx: Transaction, reason: str) -> int:
    """End all leases and count no attempt; half-sent responses are `unknown`. Returns how many."""
    leased = tx.all(SELECT_LEASED, {})
    for response, sending in leased:
        if sending:
            mark_response_unknown(tx, response, reason)
        else:
            tx.write(RELEASE_RESPONSE, {"response": response, "now": tx.now})
    return len(leased)


def _end_response(
    tx: Transaction, response: int, target: ResponseState, verb: str, reason: str | None = None
) -> None:
    state, _ = _lock_response(tx, response)
    if target not in RESPONSE_STATES[state].moves_to:
        allowed = ", ".join(
            each for each, info in RESPONSE_STATES.items() if target in info.moves_to
        )
        raise IllegalMove(
            f"response {response} is {state}: you cannot {verb}",
            hint=f"That can be done to a response that is {allowed}.",
        )
    move_response(tx, response, state, target, reason)


def _lock_response(tx: Transaction, response: int) -> tuple[ResponseState, str]:
    row = tx.one(LOCK_RESPONSE, {"response": response}) if 0 < response < MAX_ROW_ID else None
    if row is None:
        raise UnknownResponse(f"there is no response {response}")
    return ResponseState(row[0]), row[1]
