"""Conversations in a list: the message that each began with, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from bullpen.core.conversations.members import COLUMN_NAMES, ConversationState, count_messages
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.browse import MessageRecord
from bullpen.core.store.listing import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c
A = ATTEMPTS.c

SUM_COST: Statement[tuple[float]] = Statement(
    lambda: select(func.coalesce(func.sum(A.cost), const(0))).where(
        A.conversation_id == bindparam("conversation")
    )
)


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation by its beginning."""

    first: MessageRecord
    stand: ConversationState
    messages: int
    cost: float


CONVERSATION_LISTING = TablePager(MESSAGES, COLUMN_NAMES, lambda: M.conversation_id == M.message_id)


def list_conversations(
    tx: Transaction,
    wanted: Mapping[str, object],
    since: int | None,
    limit: int,
    *,
    upto: int = MAX_ROW_ID,
) -> list[ConversationSummary]:
    """The newest ones of the last day and those that are not through, the newest first.

    With a number those that began after it and up to another, the oldest first. `wanted` has what
    their first messages have in common, by the names of columns; None is anything.
    """
    rows = CONVERSATION_LISTING.page(tx, wanted, since, limit, upto)
    return [_summary(tx, MessageRecord(*row)) for row in rows]  # type: ignore[arg-type]


def _summary(tx: Transaction, first: MessageRecord) -> ConversationSummary:
    counts = count_messages(tx, first.conversation_id)
    return ConversationSummary(
        first, counts.stand, counts.messages, conversation_cost(tx, first.conversation_id)
    )


def conversation_cost(tx: Transaction, conversation_id: str) -> float:
    """What its runs have cost so far, in dollars."""
    row = tx.one(SUM_COST, {"conversation": conversation_id})
    return 0.0 if row is None else float(row[0])
