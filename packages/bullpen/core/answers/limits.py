"""Limits of a conversation: handoffs in a row, messages and cost."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from bullpen.core.answers.aggregate import lock_conversation
from bullpen.core.message import Message
from bullpen.core.models import MESSAGES
from bullpen.core.models.archive import is_follow_up
from bullpen.core.models.base import const
from bullpen.core.queue.conversations import conversation_totals, count_by_state
from bullpen.core.roster.teams import Team
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c

NO_LIMITS = Team(id="", leader="", members=())

LIMIT_REASON_PREFIX = "the conversation has "
"""How each reason begins: it tells messages that are held at a limit from other held messages."""

SELECT_HELD_AT_LIMIT: Statement[tuple[int]] = Statement(
    lambda: (
        select(M.id)
        .where(
            is_follow_up(),
            M.status == const(MessageState.HELD.value),
            M.last_error.like(bindparam("reason")),
        )
        .limit(const(1))
    )
)


def find_exceeded_limit(
    tx: Transaction, primary: Message, team: Team | None, more: int, cost: float
) -> str | None:
    """The limit that `more` messages caused by this one would exceed; None if there is none."""
    settings = tx.settings
    own = team or NO_LIMITS
    hops = _own_or_setting(own.max_hops, settings.max_hops)
    if primary.hop + 1 > hops:
        return f"{LIMIT_REASON_PREFIX}gone on for {hops} handoffs in a row"
    # Otherwise two runs of one conversation could both send its last message.
    lock_conversation(tx, primary.conversation_id)
    counts = count_by_state(tx, primary.conversation_id)
    sent = counts.total() - counts[MessageState.HELD.value]
    messages = _own_or_setting(own.max_messages, settings.max_messages)
    if sent + more > messages:
        return f"{LIMIT_REASON_PREFIX}{sent} messages of at most {messages}"
    max_cost = _own_or_setting(own.max_cost, settings.max_cost)
    if max_cost > 0:
        spent = cost + conversation_totals(tx, primary.conversation_id).cost
        if spent >= max_cost:
            return f"{LIMIT_REASON_PREFIX}cost {spent:.2f} dollars of at most {max_cost:.2f}"
    return None


def is_held_at_limit(tx: Transaction, primary: Message) -> bool:
    """Whether a message of this conversation is held at a limit already."""
    values = {"conversation": primary.conversation_id, "reason": f"{LIMIT_REASON_PREFIX}%"}
    return tx.one(SELECT_HELD_AT_LIMIT, values) is not None


def _own_or_setting(own: float | None, setting: float) -> float:
    return setting if own is None else own
