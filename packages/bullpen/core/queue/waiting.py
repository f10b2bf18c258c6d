"""How long work has waited, and what is to be delivered: from indexes, whatever else is stored."""

from __future__ import annotations

from sqlalchemy import func, select

from bullpen.core.models import LANES, MESSAGES, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.states import MessageState, ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c
M = MESSAGES.c
R = RESPONSES.c

SELECT_WAITING_SINCE: Statement[tuple[str, int | None]] = Statement(
    lambda: (
        select(
            L.agent,
            select(M.due_at)
            .where(M.agent == L.agent, M.status == const(MessageState.PENDING.value), M.ready)
            .order_by(M.sort_key, M.id)
            .limit(const(1))
            .scalar_subquery(),
        )
        .where(L.pending > const(0))
        .order_by(L.agent)
    )
)

COUNT_OUTGOING_BY_CHANNEL: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(R.channel, func.count())
        .where(R.status == const(ResponseState.PENDING.value))
        .group_by(R.channel)
        .order_by(R.channel)
    )
)


def waiting_since(tx: Transaction) -> dict[str, int]:
    """Since when the next message of each agent is due; who has none that is due is left out."""
    return {agent: due for agent, due in tx.all(SELECT_WAITING_SINCE, {}) if due is not None}


def count_outgoing_by_channel(tx: Transaction) -> dict[str, int]:
    """How many answers each channel has still to deliver."""
    return {channel: count for channel, count in tx.all(COUNT_OUTGOING_BY_CHANNEL, {})}  # noqa: C416 - rows
