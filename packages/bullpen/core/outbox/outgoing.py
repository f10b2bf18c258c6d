"""What waits for channel clients, as a whole: counted, set aside by age, made fresh again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, case, func, select, update

from bullpen.core.clock import HOUR
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outbox.person import drop_response
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

BATCH_RESPONSES = 500


def _pending() -> ColumnElement[bool]:
    return R.status == const(ResponseState.PENDING.value)


def _old() -> ColumnElement[bool]:
    return R.created_at < bindparam("before")


COUNT_OUTGOING: Statement[tuple[str, int, int, int]] = Statement(
    lambda: (
        select(
            R.channel,
            func.count(),
            func.sum(case((_old(), const(1)), else_=const(0))),
            func.min(R.created_at),
        )
        .where(_pending())
        .group_by(R.channel)
        .order_by(R.channel)
    )
)
SELECT_OLD: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(R.channel == bindparam("channel"), _pending(), _old())
        .limit(const(BATCH_RESPONSES))
    )
)
SELECT_STALE: Statement[tuple[int]] = Statement(
    lambda: (
        select(R.id)
        .where(R.channel == bindparam("channel"), _pending(), R.expires_at < bindparam("until"))
        .limit(const(BATCH_RESPONSES))
    )
)
EXTEND_EXPIRY: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(R.id == bindparam("response"), _pending())
        .values(expires_at=bindparam("until"))
    )
)


@dataclass(frozen=True, slots=True)
class ChannelBacklog:
    """What waits on one channel."""

    channel: str
    count: int
    old: int
    """So many of them were made before the moment that was asked for."""
    oldest_at: int

    @property
    def sent(self) -> bool:
        """Whether clients send it; else it lies where people read it."""
        return self.channel not in PULL_CHANNELS


def list_backlog(tx: Transaction, before: int = 0) -> list[ChannelBacklog]:
    """What waits, by channel."""
    return [ChannelBacklog(*row) for row in tx.all(COUNT_OUTGOING, {"before": before})]


def drop_old(tx: Transaction, channel: str, before: int, reason: str) -> int:
    """Do not deliver what was made before this moment; some of it, and how many they are."""
    old = tx.all(SELECT_OLD, {"channel": channel, "before": before})
    for (response,) in old:
        drop_response(tx, response, reason)
    return len(old)


def extend_expiry(tx: Transaction, channel: str, now: int) -> int:
    """Make what waits worth delivering for as long as if it came now; some of it, and how many.

    `now` stays the same from one to the next, or there would be no end.
    """
    until = now + tx.settings.response_hours * HOUR
    stale = tx.all(SELECT_STALE, {"channel": channel, "until": until})
    tx.write_each(EXTEND_EXPIRY, [{"response": response, "until": until} for (response,) in stale])
    return len(stale)
