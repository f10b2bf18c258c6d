"""The limits of a conversation: handoffs in a row, messages and cost."""

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
from bullpen.core.text import format_count

M = MESSAGES.c

NO_LIMITS = Team(id="", leader="", members=())

LIMIT_REASON_PREFIX = "the conversation has "
"""The prefix of each reason, which distinguishes messages held at a limit from other held ones."""

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
    """The limit that `more` messages caused by this one would exceed, as a reason; or None."""
    settings = tx.settings
    own = team or NO_LIMITS
    hops = _own_or_setting(own.max_hops, settings.max_hops)
    if primary.hop + 1 > hops:
        handoffs = format_count(int(hops), "handoff")
        return f"{LIMIT_REASON_PREFIX}reached its limit of {handoffs} in a row"
    # Without the lock, two runs of one conversation could both send its last message.
    lock_conversation(tx, primary.conversation_id)
    counts = count_by_state(tx, primary.conversation_id)
    sent = counts.total() - counts[MessageState.HELD.value]
    messages = _own_or_setting(own.max_messages, settings.max_messages)
    if sent + more > messages:
        return f"{LIMIT_REASON_PREFIX}reached its limit of {format_count(int(messages), 'message')}"
    max_cost = _own_or_setting(own.max_cost, settings.max_cost)
    if max_cost > 0:
        spent = cost + conversation_totals(tx, primary.conversation_id).cost
        if spent >= max_cost:
            limit = f"${max_cost:.2f} (spent: ${spent:.2f})"
            return f"{LIMIT_REASON_PREFIX}reached its cost limit of {limit}"
    return None


def is_held_at_limit(tx: Transaction, primary: Message) -> bool:
    """Whether a message of this conversation is already held at a limit."""
    values = {"conversation": primary.conversation_id, "reason": f"{LIMIT_REASON_PREFIX}%"}
    return tx.one(SELECT_HELD_AT_LIMIT, values) is not None


def _own_or_setting(own: float | None, setting: float) -> float:
    return setting if own is None else own
