"""The limits of a conversation: how far it goes by itself before a person must let it go on."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select, union_all

from bullpen.core.answers.conversation import lock_conversation
from bullpen.core.message import Message
from bullpen.core.models import ATTEMPTS, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.roster.team import Team
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c
A = MESSAGES_ARCHIVE.c

NO_LIMITS = Team(id="", leader="", members=())

LIMIT_REASON_PREFIX = "the conversation has "
"""How each reason begins, so that what waits for a limit is known from what waits for others."""

# The first message of a conversation is found by its own id.
COUNT_BY_STATE: Statement[tuple[str, int]] = Statement(
    lambda: union_all(
        select(M.status, func.count())
        .where(M.conversation_id == bindparam("conversation"), M.conversation_id != M.message_id)
        .group_by(M.status),
        select(M.status, func.count())
        .where(M.message_id == bindparam("conversation"))
        .group_by(M.status),
        select(A.status, func.count())
        .where(A.conversation_id == bindparam("conversation"))
        .group_by(A.status),
    )
)

SUM_COST: Statement[tuple[float | None]] = Statement(
    lambda: select(func.sum(ATTEMPTS.c.cost)).where(
        ATTEMPTS.c.conversation_id == bindparam("conversation")
    )
)

SELECT_HELD_AT_LIMIT: Statement[tuple[int]] = Statement(
    lambda: (
        select(M.id)
        .where(
            M.conversation_id == bindparam("conversation"),
            M.conversation_id != M.message_id,
            M.status == const(MessageState.HELD.value),
            M.last_error.like(bindparam("reason")),
        )
        .limit(const(1))
    )
)


def find_exceeded_limit(
    tx: Transaction, primary: Message, team: Team | None, more: int, cost: float
) -> str | None:
    """Why `more` messages on from this one need a person's leave; None if they do not."""
    settings = tx.settings
    own = team or NO_LIMITS
    hops = _own_or_setting(own.max_hops, settings.max_hops)
    if primary.hop + 1 > hops:
        return f"{LIMIT_REASON_PREFIX}gone on for {hops} handoffs in a row"
    asked = {"conversation": primary.conversation_id}
    # Two runs of one conversation do not both take its last place.
    lock_conversation(tx, primary.conversation_id)
    counts = tx.all(COUNT_BY_STATE, asked)
    made = sum(count for status, count in counts if status != MessageState.HELD.value)
    messages = _own_or_setting(own.max_messages, settings.max_messages)
    if made + more > messages:
        return f"{LIMIT_REASON_PREFIX}{made} messages of at most {messages}"
    most = _own_or_setting(own.max_cost, settings.max_cost)
    if most > 0:
        row = tx.one(SUM_COST, asked)
        spent = cost + ((row[0] or 0.0) if row is not None else 0.0)
        if spent >= most:
            return f"{LIMIT_REASON_PREFIX}cost {spent:.2f} dollars of at most {most:.2f}"
    return None


def is_held_at_limit(tx: Transaction, primary: Message) -> bool:
    """Whether something of this conversation waits at a limit already."""
    asked = {"conversation": primary.conversation_id, "reason": f"{LIMIT_REASON_PREFIX}%"}
    return tx.one(SELECT_HELD_AT_LIMIT, asked) is not None


def _own_or_setting(own: float | None, setting: float) -> float:
    return setting if own is None else own
