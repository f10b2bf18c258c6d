"""An operator's actions on responses: ack, drop, retry, and release those of a restored store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, case, func, null, or_, select, true, update

from bullpen.core.clock import HOUR
from bullpen.core.errors import IllegalMove, UnknownResponse
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.transitions import mark_response_unknown, move_response, pending
from bullpen.core.states import RESPONSE_STATES, ResponseState
from bullpen.core.store.paging import MAX_ROW_ID
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

BATCH_RESPONSES = 500
"""The most responses that one transaction drops or extends."""


@dataclass(frozen=True, slots=True)
class ChannelBacklog:
    """The pending responses of one channel."""

    channel: str
    count: int
    old: int
    """The number of those that are older than the requested time."""
    oldest_at: int

    @property
    def sent(self) -> bool:
        """Whether a client delivers them; if not, people read them from the store."""
        return self.channel not in PULL_CHANNELS


def _old() -> ColumnElement[bool]:
    return R.created_at < bindparam("before")


LOCK_RESPONSE: Statement[tuple[str, str]] = Statement(
    lambda: select(R.status, R.channel).where(R.id == bindparam("response")).with_for_update()
)

# What may have arrived is labelled when it is sent again, also after it was dropped.
LABEL_DROPPED: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(
            R.id == bindparam("response"),
            or_(R.sending, R.status == const(ResponseState.UNKNOWN.value)),
        )
        .values(possible_duplicate=true())
    )
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

# Reads all pending responses, but runs only once in a restored store.
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
    """Ack a response that was read on the web, in a terminal or over the API."""
    _end_response(tx, response, ResponseState.ACKED, "ack")


def drop_response(tx: Transaction, response: int, reason: str = "dropped") -> None:
    """Make a response dead, so that it is not delivered."""
    _end_response(tx, response, ResponseState.DEAD, "drop", reason)


def retry_response(tx: Transaction, response: int) -> None:
    """Send a dead or unknown response again; an unknown one is marked as a possible duplicate."""
    state, channel = _lock_response(tx, response)
    if ResponseState.PENDING not in RESPONSE_STATES[state].moves_to:
        raise IllegalMove(
            f"cannot retry response {response}: it is {state}",
            hint="Only responses that are dead or unknown allow this.",
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
    """Drop a batch of a channel's pending responses from before a time; returns the number."""
    old = tx.all(SELECT_OLD, {"channel": channel, "before": before})
    for (response,) in old:
        drop_response(tx, response, reason)
    return len(old)


def extend_expiry(tx: Transaction, channel: str, now: int) -> int:
    """Give a batch of a channel's pending responses the lifetime of new ones; returns the number.

    `now` must be the same for all batches, otherwise every batch would find the same rows again.
    """
    until = now + tx.settings.response_hours * HOUR
    stale = tx.all(SELECT_STALE, {"channel": channel, "until": until})
    tx.write_each(EXTEND_EXPIRY, [{"response": response, "until": until} for (response,) in stale])
    return len(stale)


def release_responses(tx: Transaction, reason: str) -> int:
    """End all leases without counting an attempt; half-sent responses become `unknown`."""
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
        allowed = " or ".join(
            each for each, info in RESPONSE_STATES.items() if target in info.moves_to
        )
        raise IllegalMove(
            f"cannot {verb} response {response}: it is {state}",
            hint=f"Only responses that are {allowed} allow this.",
        )
    if target is ResponseState.DEAD:
        tx.write(LABEL_DROPPED, {"response": response})
    move_response(tx, response, state, target, reason)


def _lock_response(tx: Transaction, response: int) -> tuple[ResponseState, str]:
    row = tx.one(LOCK_RESPONSE, {"response": response}) if 0 < response < MAX_ROW_ID else None
    if row is None:
        raise UnknownResponse(f"response {response} does not exist")
    return ResponseState(row[0]), row[1]
